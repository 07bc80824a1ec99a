"""The speed map as a driver sees it: a road in the colour of its speed, as a PNG.

>>> picture(3, 42.0)[:8]
b'\\x89PNG\\r\\n\\x1a\\n'

A segment that is zoomed into fills the display (800 by 480 pixels, as on-board displays have). The
ground is the same in every picture and each segment has a road of its own, so that drawing one is
to paint its road and to encode the picture: work that every result costs, whoever looks at it.
"""

from __future__ import annotations

import struct
import time
import zlib
from functools import cache

import numpy as np
import numpy.typing as npt
import polars as pl

WIDTH, HEIGHT = 800, 480
ABOUT = f"a PNG of {WIDTH} × {HEIGHT} pixels for each segment and window that reaches the map"
_SHAPES = 9  # of roads; more segments than that share them

Pixels = npt.NDArray[np.uint8]

_GROUND = ((240, 238, 232), (255, 255, 255), (206, 230, 195))  # blocks, streets, parks
_SPEEDS = ((150, 20, 30), (225, 60, 40), (245, 150, 40), (245, 215, 70), (90, 180, 80))
_BOUNDS = (15.0, 25.0, 35.0, 50.0)  # where one colour of speed ends and the next begins


class SpeedMap:
    """A sink that draws what it is given, and keeps it to be compared."""

    def __init__(self) -> None:
        self.frames: list[pl.DataFrame] = []
        self.pictures = 0
        self.seconds = 0.0  # of the processor, for drawing

    def __call__(self, frame: pl.DataFrame) -> None:
        """One picture for each tuple: here a tuple is a result, and a result is a picture."""
        began = time.process_time()
        for segment, speed in frame.select("segment", "speed").iter_rows():
            picture(segment, speed)
        self.seconds += time.process_time() - began
        self.pictures += frame.height
        self.frames.append(frame)


def picture(segment: int, speed: float) -> bytes:
    """A segment at a speed."""
    pixels = _ground().copy()
    pixels[_road(segment % _SHAPES)] = len(_GROUND) + int(np.searchsorted(_BOUNDS, speed))
    return _png(pixels)


@cache
def _ground() -> Pixels:
    """City blocks between streets, some of them parks."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    streets = (x % 80 < 6) | (y % 60 < 5)
    parks = (x // 80 * 7 + y // 60 * 3) % 11 == 0
    return np.where(streets, 1, np.where(parks, 2, 0)).astype(np.uint8)


@cache
def _road(shape: int) -> npt.NDArray[np.bool_]:
    """A winding road from the left to the right."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    middle = HEIGHT / 2 + 120 * np.sin(x / (60 + 15 * shape) + shape)
    return np.asarray(np.abs(y - middle) < 9)


def _png(pixels: Pixels) -> bytes:
    """Palette indices as a PNG, each row preceded by 0: unfiltered."""
    rows = np.pad(pixels, ((0, 0), (1, 0))).tobytes()
    colours = bytes(value for colour in (*_GROUND, *_SPEEDS) for value in colour)
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 3, 0, 0, 0)
    body = (b"IHDR", header), (b"PLTE", colours), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in body)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
