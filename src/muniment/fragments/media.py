"""Sound and film by time (draft 3.4.4, 3.4.5): from one moment up to and excluding another.

WAV is cut sample by sample as it is. Other sound is decoded and becomes WAV, so that every sample
is that of the document. Film is decoded and written again in its own format, perhaps cropped.
"""

from __future__ import annotations

import io
import wave
from fractions import Fraction
from typing import Any

from muniment.errors import MissingDriver
from muniment.fragments.result import Extract, not_possible, out_of_range
from muniment.identifiers.fragments import Fragment

__all__ = ["interval", "samples"]

_WAV = ("audio/wav", "audio/x-wav", "audio/vnd.wave", "audio/wave")
_LONGEST = Fraction(3600)  # seconds of film or decoded sound in one part
_FILM = {
    "video/mpeg": ("mpeg", "mpeg2video"),
    "video/mp4": ("mp4", "libx264"),
    "video/quicktime": ("mov", "libx264"),
    "video/webm": ("webm", "libvpx-vp9"),
    "video/matroska": ("matroska", "libx264"),
}


def interval(data: bytes, media: str, fragment: Fragment) -> Extract:
    """Return a part of sound or film."""
    positions = [str(p) if isinstance(p, str) else p for p in fragment.positions]
    unit, corners = str(fragment.scheme), positions[3:]
    if fragment.scheme == "crop":
        unit, positions = str(positions[0]), positions[1:]
    scale = Fraction(1, 1000) if unit == "msec" else Fraction(1)
    start, end = (int(str(position)) * scale for position in positions[:2])
    if media in _WAV:
        return _wav(data, media, start, end)
    if end - start > _LONGEST:
        raise not_possible(f"more than {_LONGEST} seconds at once are not cut; ask for less")
    if media.startswith("audio/"):
        return _sound(data, media, start, end)
    box = [int(number) for corner in corners for number in corner]
    return _film(data, media, start, end, box)


def _wav(data: bytes, media: str, start: Fraction, end: Fraction) -> Extract:
    try:
        with wave.open(io.BytesIO(data)) as source:
            rate, total = source.getframerate(), source.getnframes()
            first, last = int(start * rate), int(end * rate)
            if last > total:
                raise out_of_range(f"the sound lasts {total / rate:.3f} seconds only")
            source.setpos(first)
            frames = source.readframes(last - first)
            shape = source.getnchannels(), source.getsampwidth()
        return Extract(media, _wav_bytes(*shape, rate, frames))
    except (wave.Error, EOFError) as error:
        raise not_possible(f"this WAV file cannot be cut: {error}") from None


def _wav_bytes(channels: int, width: int, rate: int, frames: bytes) -> bytes:
    stream = io.BytesIO()
    with wave.open(stream, "wb") as target:
        target.setnchannels(channels)
        target.setsampwidth(width)
        target.setframerate(rate)
        target.writeframes(frames)
    return stream.getvalue()


def samples(data: bytes, media: str, start: Fraction, end: Fraction) -> bytes:
    """Return the samples of a part of sound, without any header; for comparisons."""
    return _wav(data, media, start, end).data[44:]


def _av() -> Any:
    try:
        import av
    except ImportError as error:
        raise MissingDriver("cutting sound and film", "fragments") from error
    return av


def _opened(data: bytes, media: str) -> Any:
    av = _av()
    try:
        return av.open(io.BytesIO(data))
    except (av.FFmpegError, ValueError) as error:
        raise not_possible(f"the {media} cannot be decoded: {error}") from None


def _sound(data: bytes, media: str, start: Fraction, end: Fraction) -> Extract:
    av = _av()
    with _opened(data, media) as source:
        if not source.streams.audio:
            raise not_possible(f"there is no sound in the {media}")
        stream = source.streams.audio[0]
        rate, layout = stream.rate, stream.layout.name
        first, last = int(start * rate), int(end * rate)
        width = 4 if stream.format.name in ("s32", "s32p") else 2
        resampler = av.AudioResampler(f"s{8 * width}", layout, rate)
        pieces, at = [], 0
        try:
            for frame in source.decode(stream):
                for plain in resampler.resample(frame):
                    if at < last:
                        pieces.append(_cut_samples(plain, width, at, first, last))
                    at += plain.samples
                if at >= last:
                    break
        except av.FFmpegError as error:
            raise not_possible(f"the {media} is damaged: {error}") from None
        if at < last:
            raise out_of_range(f"the sound lasts {at / rate:.3f} seconds only")
        channels = stream.channels
    data = _wav_bytes(channels, width, rate, b"".join(pieces))
    return Extract("audio/wav", data, ("given as WAV, the decoded samples",))


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
    with _opened(data, media) as source:
        if not source.streams.video:
            raise not_possible(f"there is no film in the {media}")
        film = source.streams.video[0]
        _check_film(film, source, end, box)
        try:
            count = _write_film(av, source, film, stream, (container, codec), start, end, box)
        except av.FFmpegError as error:
            raise not_possible(f"the {media} cannot be cut: {error}") from None
    if count == 0:
        raise out_of_range("the film has no picture between these moments")
    return Extract(media, stream.getvalue(), ("encoded again; pictures are those of the interval",))


def _check_film(film: Any, source: Any, end: Fraction, box: list[int]) -> None:
    if box and (box[2] > film.width or box[3] > film.height):
        raise out_of_range(f"the rectangle lies outside of {film.width}x{film.height}")
    length = Fraction(source.duration, 1_000_000) if source.duration else None
    if length is not None and end > length + Fraction(1, 25):
        raise out_of_range(f"the film lasts {float(length):.3f} seconds only")


def _write_film(
    av: Any, source: Any, film: Any, stream: Any, kind: tuple[str, str],
    start: Fraction, end: Fraction, box: list[int],
) -> int:  # fmt: skip
    """Copy the pictures of an interval; return how many there were."""
    rate = film.average_rate or Fraction(25)
    count = 0
    origin = film.start_time * film.time_base if film.start_time else Fraction(0)
    with av.open(stream, "w", format=kind[0]) as target:
        out = target.add_stream(kind[1], rate=rate)
        out.width, out.height = (
            (box[2] - box[0], box[3] - box[1]) if box else (film.width, film.height)
        )
        out.pix_fmt = "yuv420p"
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
        for packet in out.encode():
            target.mux(packet)
    return count
