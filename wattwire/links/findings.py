"""Results of tests on a link."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One test: what was tested, where, and both values."""

    place: str
    """Link, direction, time of the window and seed."""
    quantity: str
    expected: str
    measured: str
    passed: bool

    def words(self) -> str:
        """Return the finding as one line."""
        return f"{self.place}: {self.quantity}: expected {self.expected}, found {self.measured}"


def exact(place: str, quantity: str, expected: object, measured: object) -> Finding:
    """Return a finding that requires two equal values."""
    return Finding(place, quantity, f"{expected}", f"{measured}", expected == measured)
