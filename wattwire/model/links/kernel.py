"""Decide whether queueing disciplines of Linux (tbf, netem) can express a link.

The kernel delays and loses a frame before its transmission; the emulator does so afterwards. Both
are the same only for a fixed delay, so a link with a rate and a random part is refused.
"""

from __future__ import annotations

from wattwire.model.errors import UsageError
from wattwire.model.links.profile import DIRECTIONS, Direction, Link

OVERHEAD_BYTES_MAX = 65_535


def check_expressible(link: Link, place: str) -> None:
    """Raise UsageError if the kernel cannot express a link. `place` names the key of the engine."""
    if (reason := _inexpressible(link)) is not None:
        raise UsageError(
            f"{place}: found 'kernel' with the link {link.name!r}, which has {reason}; allowed for "
            "this link: 'emulator'"
        )


def _inexpressible(link: Link) -> str | None:
    """Return the first property of a link that the kernel cannot express, with the reason."""
    if link.half_duplex:
        return "a half-duplex medium: no queueing discipline covers several devices"
    for name in DIRECTIONS:
        course = link.course(name)
        direction = course.segments[0].direction
        if direction.trace:
            return f"{name}.trace: no queueing discipline follows a delivery trace"
        if len(course.segments) > 1:
            return f"changes of {name}: the kernel changes nothing at a time of the window"
        if (reason := _inexpressible_values(direction)) is not None:
            return f"{name}.{reason}"
    return None


def _inexpressible_values(direction: Direction) -> str | None:
    if direction.jitter_ms and direction.jitter_shape != "uniform":
        return f"jitter_shape {direction.jitter_shape!r}: netem has only uniform jitter here"
    if direction.jitter_ms and not direction.reorders:
        return "jitter_ms without reorders = true: netem lets frames overtake each other"
    if not 0 <= direction.overhead_bytes <= OVERHEAD_BYTES_MAX:
        return f"overhead_bytes {direction.overhead_bytes}: tbf has only 0 to {OVERHEAD_BYTES_MAX}"
    is_random = direction.jitter_ms or direction.loss or direction.bursts is not None
    if direction.is_limited and is_random:
        return (
            "rate_mbit_s with a jitter or loss: the kernel applies them before the transmission, "
            "so lost frames take no transmission time and jitter changes the queue"
        )
    return None
