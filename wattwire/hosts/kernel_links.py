"""Express a link by queueing disciplines of Linux: tbf for the rate, netem for the rest."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from wattwire.model.links.profile import DIRECTIONS, FRAME_BYTES_MAX, Direction, Link

NETEM, TBF = "netem", "tbf"
ROOT, DELAYED = "1:", "1:1"
BURST_S = 250e-6
"""Transmission time that tbf may send at once, because a timer wakes it for the rest."""
NETEM_FRAMES = 1_000_000
"""Frames that netem holds during their delay. The queue of the link is that of tbf."""
COUNTERS = {"bytes": "sent_bytes", "packets": "sent_frames", "drops": "dropped_frames"}


def kinds_of(link: Link) -> set[str]:
    """Return the queueing disciplines that a link needs."""
    return set().union(*(kinds_of_direction(link, name) for name in DIRECTIONS))


def kinds_of_direction(link: Link, name: str) -> set[str]:
    """Return the queueing disciplines that a direction of a link needs."""
    direction = link.course(name).segments[0].direction
    kinds = {NETEM} if _netem_options(direction) else set()
    return kinds | ({TBF} if direction.rate_bit_s is not None else set())


def commands(direction: Direction, device: str) -> Iterator[str]:
    """Yield the commands of `tc` that make a device send its frames through a direction."""
    netem = _netem_options(direction)
    if netem:
        options = " ".join(netem)
        yield f"qdisc add dev {device} root handle {ROOT} {NETEM} {options} limit {NETEM_FRAMES}"
    if direction.rate_bit_s is not None:
        parent = f"parent {DELAYED} handle 10:" if netem else f"root handle {ROOT}"
        overhead = f" overhead {direction.overhead_bytes}" if direction.overhead_bytes else ""
        yield (
            f"qdisc add dev {device} {parent} {TBF} rate {direction.rate_bit_s}bit "
            f"burst {_burst_bytes(direction)} limit {direction.queue_bytes}{overhead}"
        )


def _burst_bytes(direction: Direction) -> int:
    """Return the bucket of tbf: at least a frame, which tbf would drop otherwise."""
    assert direction.rate_bit_s is not None
    at_once = round(direction.rate_bit_s / 8 * BURST_S)
    return max(FRAME_BYTES_MAX + direction.overhead_bytes, at_once)


def _netem_options(direction: Direction) -> list[str]:
    options = []
    if direction.delay_ms:
        options.append(f"delay {direction.delay_ms:.6f}ms")
        if direction.jitter_ms:
            options.append(f"{direction.jitter_ms:.6f}ms")
    if direction.bursts is not None:
        bursts = direction.bursts
        shares = (bursts.enter, bursts.leave, bursts.loss_bad, bursts.loss_good)
        options.append("loss gemodel " + " ".join(_percent(share) for share in shares))
    elif direction.loss:
        options.append(f"loss random {_percent(direction.loss)}")
    return options


def _percent(share: float) -> str:
    return f"{100 * share:.9g}%"


def read_counters(text: str) -> dict[str, dict[str, int]]:
    """Return the counters of `tc -s -json qdisc show` by queueing discipline.

    A frame that tbf drops also counts as dropped by netem above it.
    """
    entries: list[Mapping[str, Any]] = json.loads(text or "[]")
    return {
        entry["kind"]: {name: int(entry.get(key, 0)) for key, name in COUNTERS.items()}
        for entry in entries
        if entry.get("kind") in (NETEM, TBF)
    }
