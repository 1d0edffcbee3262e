"""Rectangles of images: pixels from the upper left, the end excluded (draft 3.4.5)."""

from __future__ import annotations

import io
import warnings
from typing import Any

from muniment.errors import MissingDriver
from muniment.fragments.result import Extract, not_possible, out_of_range
from muniment.identifiers.fragments import Fragment

__all__ = ["open_frame", "rectangle"]

# Formats that keep every pixel; a part of any other becomes PNG.
_EXACT = {"image/png": "PNG", "image/gif": "GIF", "image/tiff": "TIFF", "image/bmp": "BMP"}


def rectangle(data: bytes, media: str, fragment: Fragment) -> Extract:
    """Return a rectangle of one frame of an image, every pixel as it was."""
    first, second, frame = fragment.positions
    left, top, right, bottom = (int(number) for number in (*first, *second))
    with open_frame(data, media, int(str(frame))) as image:
        width, height = image.size
        if right > width or bottom > height:
            raise out_of_range(f"({right},{bottom}) lies outside: the image is {width}x{height}")
        part = image.crop((left, top, right, bottom))
        if media == "image/gif" and part.mode != "P":
            part, media = part.convert("RGBA"), "image/png"
        target = _EXACT.get(media, "PNG")
        remarks = () if media in _EXACT else ("given as PNG, which keeps every pixel",)
        stream = io.BytesIO()
        part.save(stream, target)
    return Extract(media if media in _EXACT else "image/png", stream.getvalue(), remarks)


def open_frame(data: bytes, media: str, frame: int) -> Any:
    """Open an image at one of its frames, or say why that cannot be done."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise MissingDriver("cutting images", "fragments") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(data))
            frames = getattr(image, "n_frames", 1)
            if frame >= frames:
                raise out_of_range(f"there is no frame {frame}: there are {frames}")
            image.seek(frame)
            image.load()
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise not_possible("the image has too many pixels to be unpacked here") from None
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, EOFError) as error:
        raise not_possible(f"the {media} cannot be read as an image: {error}") from None
    return image
