"""The sample file: records in memory during the window, written after it (C-24 to C-26)."""

from __future__ import annotations

import itertools
from struct import Struct

HEADER = Struct("<8sHHHBBHHIQQQ16x")
RECORD = Struct("<QqqqIHBB")


class Recorder:
    """Holds `capacity` records. `add` takes the eight fields of C-25 and is safe in any thread."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._data = bytearray(HEADER.size + RECORD.size * capacity)
        # Touched now, so that no page fault falls into the window.
        self._data[::4096] = bytes(len(range(0, len(self._data), 4096)))
        # next() of a counter is one step under the interpreter's lock: no lock of our own.
        self._next = itertools.count()
        self.recorded = 0
        self.overflow = 0

    def add(self, *fields: int) -> None:
        index = next(self._next)
        if index < self._capacity:
            RECORD.pack_into(self._data, 64 + 40 * index, *fields)

    def write(self, path: str, role: int, node: int, seed: int) -> None:
        """Ends the recording; sets `recorded` and `overflow`."""
        total = next(self._next)
        self.recorded = min(total, self._capacity)
        self.overflow = total - self.recorded
        counts = (self.recorded, self.overflow, seed)
        HEADER.pack_into(self._data, 0, b"WATTWIRE", 1, 64, 40, role, 1, node, 0, 0, *counts)
        with open(path, "wb") as file:
            file.write(memoryview(self._data)[: 64 + 40 * self.recorded])
