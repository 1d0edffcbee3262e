"""Format tokens and the media types they stand for (draft 2.5).

A token is the minor type where that is unique, else ``major+minor``. "Unique" would depend on the
day you ask, so the table is owned by the archive and only ever grows: what is here never changes
its meaning, and an archive adds its own tokens when they are first used. The name of a character
set is a token for plain text in it (draft 3.4.1).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from functools import lru_cache

from muniment.identifiers.characters import TOKEN, decode, escape

__all__ = [
    "CHARSETS", "TOKENS", "charset_of", "charset_token", "codec_name", "default_scheme",
    "media_type", "token_for",
]  # fmt: skip

TOKENS: Mapping[str, str] = {
    # fixed by the draft, and its examples
    "text": "text/plain", "header": "message/header", "html": "text/html", "sgml": "text/sgml",
    "xml": "text/xml", "au": "audio/basic", "basic": "audio/basic", "mpeg": "video/mpeg",
    # text and data
    "css": "text/css", "csv": "text/csv", "markdown": "text/markdown",
    "tab-separated-values": "text/tab-separated-values", "uri-list": "text/uri-list",
    "turtle": "text/turtle", "calendar": "text/calendar", "richtext": "text/richtext",
    "json": "application/json", "ld%2bjson": "application/ld+json", "sql": "application/sql",
    "xhtml%2bxml": "application/xhtml+xml", "rdf%2bxml": "application/rdf+xml",
    "pdf": "application/pdf", "rtf": "application/rtf", "postscript": "application/postscript",
    "zip": "application/zip", "gzip": "application/gzip",
    "octet-stream": "application/octet-stream",
    "warc": "application/warc", "epub%2bzip": "application/epub+zip",
    "vnd%2eapache%2eparquet": "application/vnd.apache.parquet",
    "vnd%2esqlite3": "application/vnd.sqlite3", "rfc822": "message/rfc822",
    # SIARD has no registered media type yet
    "siard": "application/x-siard",
    # images
    "gif": "image/gif", "png": "image/png", "jpeg": "image/jpeg", "tiff": "image/tiff",
    "bmp": "image/bmp", "webp": "image/webp", "jp2": "image/jp2", "avif": "image/avif",
    "apng": "image/apng", "svg%2bxml": "image/svg+xml",
    # sound and moving images
    "wav": "audio/wav", "vnd%2ewave": "audio/vnd.wave", "flac": "audio/flac", "aac": "audio/aac",
    "aiff": "audio/aiff", "opus": "audio/opus", "mp4": "video/mp4", "webm": "video/webm",
    "quicktime": "video/quicktime", "matroska": "video/matroska", "h264": "video/h264",
}  # fmt: skip

# Preferred MIME names of the IANA registry, in lower case.
_CHARSETS = """
    us-ascii utf-8 utf-16 utf-16be utf-16le utf-32 utf-32be utf-32le utf-7
    iso-8859-1 iso-8859-2 iso-8859-3 iso-8859-4 iso-8859-5 iso-8859-6 iso-8859-7 iso-8859-8
    iso-8859-9 iso-8859-10 iso-8859-13 iso-8859-14 iso-8859-15 iso-8859-16
    windows-1250 windows-1251 windows-1252 windows-1253 windows-1254 windows-1255 windows-1256
    windows-1257 windows-1258 koi8-r koi8-u tis-620 macintosh hp-roman8 kz-1048
    shift_jis euc-jp iso-2022-jp iso-2022-jp-2 euc-kr iso-2022-kr gb2312 gbk gb18030 hz-gb-2312
    big5 big5-hkscs windows-31j johab ptcp154
    ibm037 ibm437 ibm500 ibm775 ibm850 ibm852 ibm855 ibm857 ibm858 ibm860 ibm861 ibm862 ibm863
    ibm864 ibm865 ibm866 ibm869 ibm1026 ibm273 ibm424
    iso-8859-6-e iso-8859-6-i iso-8859-8-e iso-8859-8-i windows-874 iso-2022-jp-1 iso-2022-cn
    ibm277 ibm278 ibm280 ibm284 ibm285 ibm290 ibm297 ibm420 ibm423 ibm868 ibm870 ibm871 ibm880
    ibm903 ibm904 ibm905 ibm918 ibm1047 ibm00858 ibm01140 ibm01141 ibm01142
    ibm01143 ibm01144 ibm01145 ibm01146 ibm01147 ibm01148 ibm01149 viscii ebcdic-us
    """
CHARSETS = frozenset(_CHARSETS.split())
_CODECS = {
    "windows-31j": "cp932", "macintosh": "mac_roman", "windows-874": "cp874", "ibm00858": "cp858",
    "ibm01140": "cp1140", "iso-8859-6-e": "iso8859-6", "iso-8859-6-i": "iso8859-6",
    "iso-8859-8-e": "iso8859-8", "iso-8859-8-i": "iso8859-8",
}  # fmt: skip
_PLAIN = re.compile(r"[a-z0-9-]+/[a-z0-9.+_-]+")


def media_type(token: str | None, tokens: Mapping[str, str] = TOKENS) -> str | None:
    """Return the media type that a canonical token stands for, if it is known.

    >>> media_type("html"), media_type("image+svg%2bxml"), media_type("iso-8859-1")
    ('text/html', 'image/svg+xml', 'text/plain;charset=iso-8859-1')
    """
    if token is None or token == "*":
        return None
    if token in tokens:
        return tokens[token]
    if token in CHARSETS:
        return f"text/plain;charset={token}"
    major, plus, minor = token.partition("+")
    return f"{decode(major)}/{decode(minor)}" if plus else None


def token_for(media: str, tokens: Mapping[str, str] = TOKENS) -> str | None:
    """Return the token for a media type, or None where the minor type already means another one.

    >>> token_for("text/plain"), token_for("text/plain; charset=UTF-8"), token_for("audio/mpeg")
    ('text', 'utf-8', 'audio+mpeg')
    """
    bare, _, parameters = (part.strip() for part in media.lower().partition(";"))
    charset = charset_token(charset_of(f";{parameters}") or "us-ascii")
    if bare == "text/plain" and charset not in (None, "us-ascii"):
        return charset
    if not _PLAIN.fullmatch(bare):
        return None
    for token, meaning in tokens.items():
        if meaning == bare:
            return token
    major, minor = (escape(part, TOKEN) for part in bare.split("/", 1))
    free = minor not in tokens and minor not in CHARSETS
    return minor if free else f"{major}+{minor}"


def charset_of(media: str | None) -> str | None:
    """Return the name of the character set of a text, or None if the media type has none."""
    if media is None or "charset=" not in media.lower():
        return None
    return media.lower().partition("charset=")[2].partition(";")[0].strip('" ') or None


@lru_cache(maxsize=256)
def charset_token(charset: str) -> str | None:
    """Return the token of a character set by any of its names, such as latin1, if it is known.

    Python has codecs that are no character sets, such as punycode: they are none here, either.
    """
    if charset in CHARSETS:
        return charset
    codec = codec_name(charset)
    same = (token for token in sorted(CHARSETS) if codec is not None and codec_name(token) == codec)
    return next(same, None)


def codec_name(charset: str) -> str | None:
    """Return Python's name of a character set, or None if only the system may know it."""
    try:
        return codecs.lookup(_CODECS.get(charset, charset)).name
    except (LookupError, ValueError):
        return None


def default_scheme(media: str | None) -> str | None:
    """Return the fragment scheme that may be left out for a media type (draft 3.3)."""
    major = (media or "").partition("/")[0]
    return {"text": "char", "image": "rect", "audio": "sec", "video": "sec"}.get(major)
