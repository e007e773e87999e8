"""The sample file: records in memory during the window, written after it (C-24 to C-26)."""

from __future__ import annotations

import itertools

from .constants import FILE_CLOCK, FILE_MAGIC, FILE_VERSION, HEADER, RECORD

pack_record = RECORD.pack_into


class Recorder:
    """Holds `capacity` records. `add` takes the eight fields of C-25 and is safe in any thread.

    `places`, `end` and `data` let a loop that handles every message write without calling `add`.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.end = HEADER.size + RECORD.size * capacity
        self.data = bytearray(self.end)
        # Touched now, so that no page fault falls into the window.
        self.data[::4096] = bytes(len(range(0, self.end, 4096)))
        # Where the next record goes. next() of a counter is one step under the interpreter's
        # lock: no lock of our own.
        self.places = itertools.count(HEADER.size, RECORD.size)
        self.recorded = self.recorded_elsewhere = 0
        self.overflow = self.overflow_elsewhere = 0

    def add(self, *fields: int) -> None:
        place = next(self.places)
        if place < self.end:
            pack_record(self.data, place, *fields)

    def write(self, path: str, role: int, node: int, seed: int) -> None:
        """Ends the recording; sets `recorded` and `overflow`."""
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
