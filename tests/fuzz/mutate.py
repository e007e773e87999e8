"""Mutate values, texts and bytes: almost valid input detects more faults than random input."""

from __future__ import annotations

import copy
import random
from typing import Any

NUMBERS = (
    *(0, 1, -1, 2, 7, 23, 95, 96, 255, 256, 65_534, 65_535, 65_536, 2**31 - 1, 2**31, 2**32),
    *(2**48 - 2, 2**48 - 1, 2**53, 2**63 - 1, 2**63, 2**64, -(2**63), -(2**63) - 1, 10**30),
    *(0.0, -0.0, 0.5, 1.0, 1e9, 1e308, -1e308, float("inf"), float("-inf"), float("nan")),
)
TEXTS = (
    *("", " ", "\n", "\0", "é", "\ud800", "\U0001f916", "\\", '"', "a" * 300, "true", "null", "-"),
    *("topic", "service", "record", "bytes", "open", "closed", "client", "../..", "/", "{}", "1e9"),
)
BYTES = (
    b"",
    b"\0",
    b"\xff",
    b"\n",
    b'"',
    b"{",
    b"}",
    b"[" * 2000,
    b"\\u",
    b"\xed\xa0\x80",
    b"1e999",
)


class Mutator:
    """A mutator whose results are determined by its seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def scalar(self) -> Any:
        kind = self.random.randrange(6)
        if kind == 0:
            return self.random.choice((True, False, None))
        if kind == 1:
            return self.random.choice(TEXTS)
        if kind == 2:
            return self.random.getrandbits(self.random.choice((4, 16, 40, 63, 66)))
        if kind == 3:
            return [self.scalar() for _ in range(self.random.randrange(3))]
        if kind == 4:
            return {self.random.choice(TEXTS): self.random.choice(NUMBERS)}
        return self.random.choice(NUMBERS)

    def value(self, given: Any) -> Any:
        """Return a copy with one to three random changes."""
        found = copy.deepcopy(given)
        for _ in range(self.random.randint(1, 3)):
            found = self._changed(found)
        return found

    def table(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return a mutated copy that is always a table, such as the content of a TOML file."""
        found = self.value(given)
        return found if isinstance(found, dict) else {"title": found}

    def _changed(self, value: Any) -> Any:
        deeper = self.random.random() < 0.75
        if isinstance(value, dict) and value and deeper:
            key = self.random.choice(list(value))
            act = self.random.randrange(8)
            if act == 0:
                del value[key]
            elif act == 1:
                value[self.random.choice((*TEXTS, key + "x", key[:-1]))] = self.scalar()
            else:
                value[key] = self._changed(value[key])
            return value
        if isinstance(value, list) and value and deeper:
            at = self.random.randrange(len(value))
            act = self.random.randrange(6)
            if act == 0:
                del value[at]
            elif act == 1:
                value.insert(at, copy.deepcopy(value[at]))
            else:
                value[at] = self._changed(value[at])
            return value
        if isinstance(value, str) and deeper:
            return self.text(value)
        if type(value) is int and deeper:
            return value + self.random.choice((-1, 1, 2, 1000, -value - 1, value))
        return self.scalar()

    def text(self, given: str) -> str:
        at = self.random.randint(0, len(given))
        piece = self.random.choice((*TEXTS, given[at : at + 3], ""))
        return given[:at] + piece + given[at + self.random.randrange(4) :]

    def bytes(self, given: bytes) -> bytes:
        """Return the bytes with random changes.

        The changes flip bits, delete, duplicate, move or insert pieces, and truncate or extend the
        end.
        """
        data = bytearray(given)
        for _ in range(self.random.randint(1, 4)):
            at = self.random.randint(0, len(data))
            span = self.random.choice((1, 1, 2, 4, 8, 24, 40))
            act = self.random.randrange(6)
            if act == 0 and data:
                data[at % len(data)] ^= 1 << self.random.randrange(8)
            elif act == 1:
                data[at:at] = self.random.choice(BYTES)
            elif act == 2:
                del data[at : at + span]
            elif act == 3:
                data[at:at] = data[at : at + span]
            elif act == 4:
                del data[at:]
            else:
                data[at : at + span] = self.random.randbytes(min(span, len(data) - at))
        return bytes(data)
