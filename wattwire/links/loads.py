"""Frames for the law in logical time, and profiles without chance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from wattwire.model.links.profile import (
    DIRECTIONS,
    FRAME_BYTES_MAX,
    OPPORTUNITY_BYTES,
    Course,
    Direction,
    Link,
    Segment,
)
from wattwire.rig.emulator import NS_PER_MS, NS_PER_S, Port, apply_law
from wattwire.rig.emulator_log import FRAME

PORTS = (Port("near", True), Port("far", False))
ENDS = {DIRECTIONS[0]: (0, 1), DIRECTIONS[1]: (1, 0)}
"""Direction → positions of the sender and the receiver in PORTS."""
FRAME_BYTES = 1000
JITTERS_APART = 25
"""Gap between frames in units of the jitter: in exp(-25) of the cases, order changes a delay."""
BITS_PER_BYTE = 8

Runner = Callable[[Link, int, np.ndarray], np.ndarray]
"""Applies the law of a link with a seed to frames, and returns one record per frame."""


def apply_between_ends(link: Link, seed: int, frames: np.ndarray) -> np.ndarray:
    """Apply the law between a near and a far host."""
    return apply_law(link, seed, PORTS, frames)


def with_course(link: Link, name: str, course: Course) -> Link:
    """Return the link with another course of one direction."""
    return replace(link, up=course) if name == DIRECTIONS[0] else replace(link, down=course)


def constant(link: Link, name: str, direction: Direction) -> Link:
    """Return the link with the parameters of one direction fixed, without changes."""
    opportunities = link.course(name).opportunities_ms
    return with_course(link, name, Course((Segment(0.0, direction),), opportunities))


def certain(direction: Direction) -> Direction:
    """Return the direction without loss and jitter."""
    return replace(direction, loss=0.0, bursts=None, jitter_ms=0.0)


def transmission_ns(direction: Direction, size_bytes: int) -> float:
    """Return the time that a frame uses the medium, 0 without a rate."""
    if direction.rate_bit_s is None:
        return 0.0
    bits = max(1, size_bytes + direction.overhead_bytes) * BITS_PER_BYTE
    return bits * NS_PER_S / direction.rate_bit_s


def frames_at(times_ns: np.ndarray, name: str, size_bytes: int = FRAME_BYTES) -> np.ndarray:
    """Return frames of one direction (array of FRAME)."""
    frames = np.zeros(len(times_ns), FRAME)
    frames["at_ns"] = times_ns
    frames["size_bytes"] = size_bytes
    frames["source"], frames["target"] = ENDS[name]
    return frames


def spaced(link: Link, name: str, direction: Direction, count: int) -> np.ndarray:
    """Return frames so far apart that none waits for another one, or for its order.

    With a trace, each frame arrives at a delivery opportunity.
    """
    gap_ns = JITTERS_APART * direction.jitter_ms * NS_PER_MS
    gap_ns = round(gap_ns + 2 * transmission_ns(direction, FRAME_BYTES)) + 1000
    first_ns = 0
    opportunities = link.course(name).opportunities_ms
    if opportunities:
        period_ns = round(opportunities[-1] * NS_PER_MS)
        gap_ns = -(-gap_ns // period_ns) * period_ns
        first_ns = round(opportunities[0] * NS_PER_MS)
    return frames_at(first_ns + gap_ns * np.arange(count, dtype=np.uint64), name)


def saturating(link: Link, name: str, direction: Direction, count: int) -> np.ndarray:
    """Return full frames that arrive faster than the direction can carry them.

    With a trace, they cover two of its periods.
    """
    opportunities = link.course(name).opportunities_ms
    if not opportunities:
        gap_ns = max(1, round(transmission_ns(direction, FRAME_BYTES_MAX) / 1.5))
        return frames_at(gap_ns * np.arange(count, dtype=np.uint64), name, FRAME_BYTES_MAX)
    period_ms = opportunities[-1]
    most = int(np.bincount(np.array(opportunities)).max())
    per_ms = 2 + most * OPPORTUNITY_BYTES // (FRAME_BYTES_MAX + direction.overhead_bytes)
    gap_ns = round(NS_PER_MS / per_ms)
    times_ns = np.arange(0, round(2 * period_ms * NS_PER_MS), gap_ns, dtype=np.uint64)
    return frames_at(times_ns, name, FRAME_BYTES_MAX)
