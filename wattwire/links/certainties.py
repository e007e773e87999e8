"""Test what involves no chance in a link's law: rate, queue, trace, medium, order, changes.

Expected values come from array computations that share no code with the emulator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from wattwire.links.findings import Finding, exact
from wattwire.links.loads import (
    Runner,
    certain,
    constant,
    frames_at,
    saturating,
    spaced,
    transmission_ns,
    with_course,
)
from wattwire.links.statistics import Part, parts, seconds_ns
from wattwire.model.links.profile import (
    DIRECTIONS,
    FRAME_BYTES_MAX,
    OPPORTUNITY_BYTES,
    Course,
    Link,
    Segment,
)
from wattwire.rig.emulator import NS_PER_MS
from wattwire.rig.emulator_log import Fate

SATURATING_FRAMES = 20_000
ORDER_FRAMES = 20_000
SEED = 1


def check_certainties(link: Link, run: Runner) -> Iterator[Finding]:
    """Test everything of a link that involves no chance."""
    for part in parts(link):
        if part.direction.is_limited:
            yield from _check_queue(part, run)
        if part.direction.jitter_ms:
            yield _check_order(part, run)
    if link.half_duplex:
        yield _check_shared_medium(link, run)
    for name in DIRECTIONS:
        yield from _check_changes(link, name, run)


def _check_queue(part: Part, run: Runner) -> Iterator[Finding]:
    """Saturate a direction; test when each frame leaves and which frames the queue drops."""
    direction = certain(part.direction)
    link = constant(part.link, part.name, direction)
    frames = saturating(link, part.name, direction, SATURATING_FRAMES)
    records = run(link, SEED, frames)
    accepted = records["fate"] == Fate.DELIVERED
    sent_ns = records["planned_ns"][accepted].astype(float) - direction.delay_ms * NS_PER_MS
    count = len(sent_ns)
    carried = (FRAME_BYTES_MAX + direction.overhead_bytes) * np.arange(1, count + 1)
    if direction.trace:
        opportunities_ns = _opportunities_ns(link, part.name, int(carried[-1]))
        expected_ns = opportunities_ns[-(-carried // OPPORTUNITY_BYTES) - 1]
        tolerance_ns = np.ones(count)
    else:
        expected_ns = transmission_ns(direction, FRAME_BYTES_MAX) * np.arange(1, count + 1)
        tolerance_ns = np.arange(1.0, count + 1)  # the emulator rounds each frame's time to ns
    wrong = int(np.count_nonzero(np.abs(sent_ns - expected_ns) > tolerance_ns))
    yield exact(part.place, "frames that leave at a wrong time under saturation", 0, wrong)
    # Occupancy from the expected times: accepted frames that have not left.
    before = np.cumsum(accepted) - accepted
    left = np.searchsorted(np.sort(sent_ns), records["in_ns"].astype(float), side="right")
    occupied_bytes = (before - left + 1) * FRAME_BYTES_MAX
    fits = occupied_bytes <= direction.queue_bytes
    yield exact(
        part.place, f"frames for which a queue of {direction.queue_bytes} bytes decides wrongly", 0,
        int(np.count_nonzero(fits != accepted)),
    )  # fmt: skip
    dropped = int(np.count_nonzero(~accepted))
    yield Finding(part.place, "drops under saturation", "some", str(dropped), dropped > 0)


def _opportunities_ns(link: Link, name: str, bytes_needed: int) -> np.ndarray:
    """Return the times of enough opportunities, with the trace repeated."""
    times_ms = np.array(link.course(name).opportunities_ms)
    needed = bytes_needed // OPPORTUNITY_BYTES + 2
    repetitions = -(-needed // len(times_ms))
    repeated = times_ms[None, :] + times_ms[-1] * np.arange(repetitions)[:, None]
    flat: np.ndarray = repeated.ravel() * NS_PER_MS
    return flat


def _check_order(part: Part, run: Runner) -> Finding:
    """Test that frames overtake each other if the profile reorders, and only then."""
    direction = replace(part.direction, loss=0.0, bursts=None, rate_mbit_s=None, trace="")
    course = Course((Segment(0.0, direction),))
    link = replace(part.link, up=course, down=course, half_duplex=False)
    gap_ns = max(1, round(direction.jitter_ms * NS_PER_MS / 20))
    times_ns = gap_ns * np.arange(ORDER_FRAMES, dtype=np.uint64)
    planned_ns = run(link, SEED, frames_at(times_ns, part.name))["planned_ns"].astype(float)
    overtakes = bool((np.diff(planned_ns) < 0).any())
    return exact(part.place, "frames overtake each other", direction.reorders, overtakes)


def _check_shared_medium(link: Link, run: Runner) -> Finding:
    """Saturate both directions; test that each frame waits for all before it."""
    first = {name: certain(link.course(name).segments[0].direction) for name in DIRECTIONS}
    for name, direction in first.items():
        link = constant(link, name, replace(direction, queue_bytes=1 << 40))
    loads = [saturating(link, name, first[name], SATURATING_FRAMES // 2) for name in DIRECTIONS]
    frames = np.sort(np.concatenate(loads), order=["at_ns", "source"])
    records = run(link, SEED, frames)
    is_up = records["source"] == 0
    lengths_ns = np.where(
        is_up, *(transmission_ns(first[name], FRAME_BYTES_MAX) for name in DIRECTIONS)
    )
    delays_ns = np.where(is_up, *(first[name].delay_ms * NS_PER_MS for name in DIRECTIONS))
    error_ns = np.abs(records["planned_ns"] - delays_ns - np.cumsum(lengths_ns))
    wrong = int(np.count_nonzero(error_ns > np.arange(1, len(records) + 1)))
    return exact(f"{link.name} both directions", "frames that ignore the shared medium", 0, wrong)


def _check_changes(link: Link, name: str, run: Runner) -> Iterator[Finding]:
    """Test that a frame right before a change has the old delay, and one at it the new delay."""
    course = link.course(name)
    segments = [replace(s, direction=certain(s.direction)) for s in course.segments]
    whole = replace(course, segments=tuple(segments))
    link = with_course(link, name, whole)
    for before, after in zip(segments, segments[1:], strict=False):
        change_ns = seconds_ns(after.at_s)
        # Two runs, because the first frame must not delay the second one.
        for at_ns, segment in ((change_ns - 1, before), (change_ns, after)):
            frames = spaced(link, name, segment.direction, 1)
            frames["at_ns"] = at_ns
            record = run(link, SEED, frames)[0]
            taken_ns = int(record["planned_ns"]) - at_ns
            size = int(frames["size_bytes"][0])
            expected_ns = segment.direction.delay_ms * NS_PER_MS
            expected_ns += transmission_ns(segment.direction, size)
            place = f"{link.name} {name} at {at_ns} ns"
            yield exact(place, "delay at a change, ns", round(expected_ns), taken_ns)
