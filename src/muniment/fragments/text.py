"""Characters of texts: code points of the form whose lines end with CR LF (draft 3.4.1).

A lone CR or LF counts as CR LF; a byte order mark is no character. The character set is the one
that the format names, or the one that a document of markup declares, or UTF-8.
"""

from __future__ import annotations

import codecs
import re
import shutil
import subprocess

from muniment.fragments.result import Extract, not_possible, out_of_range
from muniment.identifiers.formats import charset_of, charset_token, codec_name

__all__ = ["canonical_text", "characters", "decoded"]

_LINE_END = re.compile("\r\n|\r|\n")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# How markup names its character set, near its beginning (XML 1.0 appendix F; HTML, 13.2.3.2).
_XML_DECLARATION = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})""")
_META = re.compile(rb"""(?i)<meta\s[^>]{0,500}?charset\s*=\s*["']?\s*([A-Za-z0-9._:-]{1,40})""")
_WITHOUT_MARK = {
    b"\0<\0?": "utf-16-be", b"<\0?\0": "utf-16-le",
    b"\0\0\0<": "utf-32-be", b"<\0\0\0": "utf-32-le", b"\x4c\x6f\xa7\x94": "ibm037",
}  # fmt: skip
_PRESCAN = 1024  # octets


def decoded(data: bytes, media: str) -> str:
    """Return the characters of a text without its byte order mark."""
    named = charset_of(media) or _declared(data, media.partition(";")[0]) or "utf-8"
    charset = charset_token(named)
    if charset is None:
        raise not_possible(f"the character set {named} is not known")
    codec = codec_name(charset)
    try:
        if codec is None:
            return _converted(data, charset)
        words = data.decode(_ordered(codec, data))
        if codec == "utf-7" and _SURROGATE.search(words):
            raise UnicodeError
    except (UnicodeError, ValueError):
        raise not_possible(
            f"the text is not {charset}; characters are counted only if its format names its "
            "character set, such as .iso-8859-1"
        ) from None
    return words.removeprefix("\ufeff")


def _declared(data: bytes, kind: str) -> str | None:
    """Return the character set that a document declares itself, if it is of markup."""
    if not ("xml" in kind or kind in ("text/html", "text/sgml")):
        return None
    for mark, charset in _MARKS:
        if data.startswith(mark):
            return charset
    if "xml" in kind:
        declared = _XML_DECLARATION.match(data[:_PRESCAN])
        return declared[1].decode().lower() if declared else _WITHOUT_MARK.get(data[:4])
    meta = _META.search(data[:_PRESCAN])
    if meta is None:
        return None
    charset = meta[1].decode().lower()
    return "utf-8" if charset.startswith("utf-16") else charset  # it could not be read otherwise


def _ordered(codec: str, data: bytes) -> str:
    """Return the codec for UTF-16 and UTF-32 without a mark: the first octet is the high one."""
    if codec in ("utf-16", "utf-32") and not any(data.startswith(mark) for mark, _ in _MARKS):
        return f"{codec}-be"
    return codec


def _converted(data: bytes, charset: str) -> str:
    """Return the characters of a text in a character set that only the system knows."""
    program = shutil.which("iconv")
    if program is None:
        raise not_possible(f"{charset} can be read only where the program iconv is installed")
    command = [program, "-f", charset.replace("ibm0", "ibm"), "-t", "UTF-8"]
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    if done.returncode:
        raise not_possible(f"the text cannot be read as {charset}")
    return done.stdout.decode("utf-8", "replace").removeprefix("\ufeff")


def canonical_text(data: bytes, media: str) -> str:
    """Return the characters of a text in the form in which positions count."""
    return _LINE_END.sub("\r\n", decoded(data, media))


def characters(data: bytes, media: str, start: int, end: int) -> Extract:
    """Return the characters from ``start`` up to and excluding ``end``."""
    words = canonical_text(data, media)
    if end > len(words):
        raise out_of_range(f"character {end} lies behind the end: there are {len(words)}")
    kind = media.partition(";")[0]
    return Extract(f"{kind};charset=utf-8", words[start:end].encode())
