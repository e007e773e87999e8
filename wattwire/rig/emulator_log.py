"""Define the emulator's binary formats as numpy types: frames in logical time, and its log."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path

import numpy as np

from wattwire.model.errors import WattwireError

MAGIC = b"WWLINK01"
HEADER_BYTES = 16
NO_PORT = 255
"""Receiver of a frame that was dropped before the switch chose its receivers."""

FRAME = np.dtype([("at_ns", "<u8"), ("size_bytes", "<u4"), ("source", "<u2"), ("target", "<u2")])
"""A frame of the law's input."""
RECORD = np.dtype(
    [("in_ns", "<u8"), ("planned_ns", "<u8"), ("out_ns", "<u8"), ("mark", "<u8"),
     ("size_bytes", "<u4"), ("source", "u1"), ("target", "u1"), ("fate", "u1"), ("unused", "u1")]
)  # fmt: skip
"""A frame and one of its receivers; docs/links.md describes the fields."""


class Fate(IntEnum):
    """What became of a frame."""

    DELIVERED = 0
    QUEUE_FULL = 1
    RANDOM_LOSS = 2
    BURST_LOSS = 3
    NOT_WRITTEN = 4


LOST = (Fate.RANDOM_LOSS, Fate.BURST_LOSS)


def read_log(path: Path) -> np.ndarray:
    """Return the records of a log (array of RECORD). An incomplete last record is omitted.

    Raises WattwireError for a file of another format.
    """
    with path.open("rb") as file:
        header = file.read(HEADER_BYTES)
        expected = MAGIC + RECORD.itemsize.to_bytes(8, "little")
        if header != expected:
            raise WattwireError(f"{path}: found the header {header!r}; allowed: {expected!r}")
        size = path.stat().st_size - HEADER_BYTES
        return np.fromfile(file, RECORD, size // RECORD.itemsize)
