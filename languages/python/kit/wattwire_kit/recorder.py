"""Keep records in memory until the window has ended, then write the sample file (C-24 to C-26).

`arrivals.py` and `sending.py` fill the records.
"""

from __future__ import annotations

import itertools

from .constants import FILE_CLOCK, FILE_MAGIC, FILE_VERSION, HEADER, RECORD

pack_record = RECORD.pack_into


class Recorder:
    """Stores `capacity` records. Any thread may call `add` with the eight fields of C-25.

    A loop that handles every message uses `places`, `end` and `data` to write without a call.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.end = HEADER.size + RECORD.size * capacity
        self.data = bytearray(self.end)
        # Touch every page now to avoid page faults in the window.
        self.data[::4096] = bytes(len(range(0, self.end, 4096)))
        # The offset of the next record. next() is atomic in the interpreter and needs no lock.
        self.places = itertools.count(HEADER.size, RECORD.size)
        self.recorded = self.recorded_elsewhere = 0
        self.overflow = self.overflow_elsewhere = 0

    def add(self, *fields: int) -> None:
        place = next(self.places)
        if place < self.end:
            pack_record(self.data, place, *fields)

    def write(self, path: str, role: int, node: int, seed: int) -> None:
        """Write the file, and set `recorded` and `overflow`."""
        total = (next(self.places) - HEADER.size) // RECORD.size
        self.recorded = min(total, self._capacity)
        self.overflow = total - self.recorded
        sizes = (HEADER.size, RECORD.size)
        counts = (self.recorded, self.overflow, seed)
        HEADER.pack_into(
            self.data, 0, FILE_MAGIC, FILE_VERSION, *sizes, role, FILE_CLOCK, node, 0, 0, *counts
        )
        with open(path, "wb") as file:
            file.write(memoryview(self.data)[: HEADER.size + RECORD.size * self.recorded])
