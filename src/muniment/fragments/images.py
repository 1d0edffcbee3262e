"""Rectangles of images: pixels from the upper left, the end excluded (draft 3.4.5)."""

from __future__ import annotations

import io
import warnings
from typing import Any

from muniment.errors import FragmentError, MissingDriver
from muniment.fragments.result import Extract, not_possible, out_of_range
from muniment.identifiers.fragments import Fragment

__all__ = ["open_frame", "rectangle"]

# Formats that keep every pixel of some kinds of images; a part of any other becomes PNG or TIFF.
_PNG = {"1", "L", "LA", "I", "I;16", "P", "RGB", "RGBA"}
_TIFF = _PNG | {"PA", "RGBX", "CMYK", "YCbCr", "LAB", "F", "I;16B"}
_EXACT = {
    "image/png": ("PNG", _PNG),
    "image/gif": ("GIF", {"P"}),
    "image/bmp": ("BMP", {"1", "L", "P", "RGB"}),
    "image/tiff": ("TIFF", _TIFF),
}


def rectangle(data: bytes, media: str, fragment: Fragment) -> Extract:
    """Return a rectangle of one frame of an image, every pixel as it was."""
    first, second, frame = fragment.positions
    left, top, right, bottom = (int(number) for number in (*first, *second))
    with open_frame(data, media, int(str(frame))) as image:
        width, height = image.size
        if right > width or bottom > height or left >= right or top >= bottom:
            raise out_of_range(
                f"({left},{top}),({right},{bottom}) holds no pixels: the image is {width}x{height}"
            )
        part = image.crop((left, top, right, bottom))
        stream = io.BytesIO()
        for given in (media, "image/png", "image/tiff"):
            target, modes = _EXACT.get(given, ("", ()))
            if part.mode in modes:
                break
        else:
            raise not_possible(f"an image of the kind {part.mode} cannot be written")
        part.save(stream, target)
    remarks = () if given == media else (f"given as {target}, which keeps every pixel",)
    return Extract(given, stream.getvalue(), remarks)


def open_frame(data: bytes, media: str, frame: int) -> Any:
    """Open an image at one of its frames, or say why that cannot be done."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingDriver("cutting images", "fragments") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(data))
            frames = getattr(image, "n_frames", 1)
            if frame >= frames:
                raise out_of_range(f"there is no frame {frame}: there are {frames}")
            image.seek(frame)
            image.load()
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise not_possible("the image has too many pixels to be unpacked here") from None
    except FragmentError:
        raise
    except Exception as error:  # a damaged file makes Pillow's readers fail in any way
        raise not_possible(f"the {media} cannot be read as an image: {error}") from None
    return image
