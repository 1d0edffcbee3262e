"""Sound and film by time (draft 3.4.4, 3.4.5): from one moment up to and excluding another.

WAV is cut sample by sample as it is. Other sound is decoded and becomes WAV, in a width that holds
every sample of the document. Film is decoded and written again in its own format, perhaps cropped.
"""

from __future__ import annotations

import io
from fractions import Fraction
from typing import Any

from muniment.errors import MissingDriver, MunimentError
from muniment.fragments.result import Extract, not_possible, out_of_range
from muniment.fragments.wav import FLOAT, INTEGER, Wav, read_wav
from muniment.identifiers.fragments import Fragment

__all__ = ["WAV", "interval"]

WAV = ("audio/wav", "audio/x-wav", "audio/vnd.wave", "audio/wave")
_LONGEST = Fraction(3600)  # seconds of film or decoded sound in one part
_NEARLY = Fraction(1, 25)  # seconds by which a film may be shorter than its last picture lasts
_WIDTHS = {  # of decoded samples: kind and bits in WAV, and what FFmpeg calls them
    "u8": (INTEGER, 8, "u8"),
    "s32": (INTEGER, 32, "s32"),
    "flt": (FLOAT, 32, "flt"),
    "dbl": (FLOAT, 64, "dbl"),
}
_FILM = {
    "video/mpeg": ("mpeg", "mpeg2video"),
    "video/mp4": ("mp4", "libx264"),
    "video/quicktime": ("mov", "libx264"),
    "video/webm": ("webm", "libvpx-vp9"),
    "video/matroska": ("matroska", "libx264"),
    "video/x-msvideo": ("avi", "mpeg4"),
}


def interval(data: bytes, media: str, fragment: Fragment) -> Extract:
    """Return a part of sound or film."""
    positions = [str(p) if isinstance(p, str) else p for p in fragment.positions]
    unit, corners = str(fragment.scheme), positions[3:]
    if fragment.scheme == "crop":
        unit, positions = str(positions[0]), positions[1:]
    scale = Fraction(1, 1000) if unit == "msec" else Fraction(1)
    start, end = (int(str(position)) * scale for position in positions[:2])
    plain = read_wav(data) if media in WAV else None
    if plain is not None:
        return _wav(plain, media, start, end)
    if end - start > _LONGEST:
        raise not_possible(f"more than {_LONGEST} seconds at once are not cut; ask for less")
    box = [int(number) for corner in corners for number in corner]
    try:
        if media.startswith("audio/"):
            return _sound(data, media, start, end)
        return _film(data, media, start, end, box)
    except MunimentError:
        raise
    except Exception as error:  # a damaged file makes decoders fail in any way
        raise not_possible(f"the {media} cannot be cut: {error}") from None


def _wav(sound: Wav, media: str, start: Fraction, end: Fraction) -> Extract:
    first, last = int(start * sound.rate), int(end * sound.rate)
    if last > sound.length:
        raise out_of_range(f"the sound lasts {sound.length / sound.rate:.3f} seconds only")
    return Extract(media, bytes(sound.part(first, last)))


def _av() -> Any:
    try:
        import av
    except ImportError as error:
        raise MissingDriver("cutting sound and film", "fragments") from error
    return av


def _sound(data: bytes, media: str, start: Fraction, end: Fraction) -> Extract:
    av = _av()
    with av.open(io.BytesIO(data)) as source:
        if not source.streams.audio:
            raise not_possible(f"there is no sound in the {media}")
        stream = source.streams.audio[0]
        rate, layout = stream.rate, stream.layout.name
        first, last = int(start * rate), int(end * rate)
        # Lossy sound is computed; 16 bits are what it was made of. All other is kept as it is.
        kind, bits, name = _WIDTHS.get(stream.format.name.rstrip("p"), (INTEGER, 16, "s16"))
        if kind == FLOAT and not stream.codec_context.name.startswith("pcm_"):
            kind, bits, name = INTEGER, 16, "s16"
        resampler = av.AudioResampler(name, layout, rate)
        pieces, at = [], 0
        for frame in source.decode(stream):
            for plain in resampler.resample(frame):
                if at < last:
                    pieces.append(_cut_samples(plain, bits // 8, at, first, last))
                at += plain.samples
            if at >= last:
                break
        if at < last:
            raise out_of_range(f"the sound lasts {at / rate:.3f} seconds only")
        channels = stream.channels
    sound = Wav(kind, channels, rate, bits, b"".join(pieces))
    return Extract("audio/wav", bytes(sound), ("given as WAV, the decoded samples",))


def _cut_samples(frame: Any, each: int, at: int, first: int, last: int) -> bytes:
    width = each * frame.layout.nb_channels
    octets = bytes(frame.planes[0])[: frame.samples * width]
    return octets[max(0, first - at) * width : max(0, last - at) * width]


def _film(data: bytes, media: str, start: Fraction, end: Fraction, box: list[int]) -> Extract:
    if media not in _FILM:
        raise not_possible(f"parts of {media} cannot be written; ask for octets instead")
    av = _av()
    container, codec = _FILM[media]
    if codec not in av.codecs_available:
        raise not_possible(f"this installation cannot write {codec}")
    stream = io.BytesIO()
    with av.open(io.BytesIO(data)) as source:
        if not source.streams.video:
            raise not_possible(f"there is no film in the {media}")
        film = source.streams.video[0]
        if box and (box[2] > film.width or box[3] > film.height):
            raise out_of_range(f"the rectangle lies outside of {film.width}x{film.height}")
        count = _write_film(av, source, film, stream, (container, codec), start, end, box)
    if count == 0:
        raise out_of_range("the film has no picture between these moments")
    remark = "the pictures of the interval, encoded again; without sound"
    return Extract(media, stream.getvalue(), (remark,))


def _write_film(
    av: Any, source: Any, film: Any, stream: Any, kind: tuple[str, str],
    start: Fraction, end: Fraction, box: list[int],
) -> int:  # fmt: skip
    """Copy the pictures of an interval; return how many there were."""
    rate = film.average_rate or Fraction(25)
    count, moment = 0, Fraction(0)
    origin = film.start_time * film.time_base if film.start_time else Fraction(0)
    with av.open(stream, "w", format=kind[0]) as target:
        out = target.add_stream(kind[1], rate=rate)
        out.width, out.height = (
            (box[2] - box[0], box[3] - box[1]) if box else (film.width, film.height)
        )
        odd = out.width % 2 or out.height % 2  # colours for every pixel instead of every fourth
        out.pix_fmt = "yuv444p" if odd and kind[1] == "libx264" else "yuv420p"
        for frame in source.decode(film):
            moment = Fraction(frame.pts or 0) * film.time_base - origin
            if moment >= end:
                break
            if moment < start:
                continue
            picture = frame
            if box:
                image = frame.to_image().crop(tuple(box))
                picture = av.VideoFrame.from_image(image)
            picture.pts, picture.time_base = count, 1 / rate
            for packet in out.encode(picture):
                target.mux(packet)
            count += 1
        else:  # what files say of their length is often a guess: their pictures tell it
            if moment + 1 / rate < end - _NEARLY:
                raise out_of_range(f"the film lasts {float(moment + 1 / rate):.3f} seconds only")
        for packet in out.encode():
            target.mux(packet)
    return count
