"""Profiles of links between hosts: delay, loss, rate and queue per direction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from wattwire.model.errors import UsageError, unknown
from wattwire.model.fields import given, merge, needed, number, read_table

DIRECTIONS = ("up", "down")
"""From a near host to the switch, and from the switch to a near host."""
SHAPES = ("uniform", "exponential")
MEDIA = ("full-duplex", "half-duplex")
FRAME_BYTES_MAX = 1514
"""Bytes of an Ethernet frame with 1,500 bytes of payload, as a TAP device delivers it."""
HEADER_BYTES = 14
OPPORTUNITY_BYTES = 1500
"""Bytes that one line of a delivery trace can carry (Mahimahi)."""
TIME_MS_MAX = 60_000.0
RATE_MBIT_S_MIN, RATE_MBIT_S_MAX = 1e-3, 1e6
QUEUE_BYTES_MAX = 10**9
AT_S_MIN, AT_S_MAX = 1e-3, 86_400.0
TRACE_MS_MAX = 86_400_000
"""Limits of a profile, within which the emulator's integers in ns and bytes cannot overflow."""
_PLACES = ("both", *DIRECTIONS)
_SHARE = "a probability, 0 to 1"
_POSITIVE_SHARE = "a probability above 0, up to 1"
_AT = f"{AT_S_MIN:g} to {AT_S_MAX:g} s"
_TIME = f"0 to {TIME_MS_MAX:g} ms"


def _is_share(value: float) -> bool:
    return 0 <= value <= 1


def _is_positive_share(value: float) -> bool:
    return 0 < value <= 1


def _is_time(value: float) -> bool:
    return 0 <= value <= TIME_MS_MAX


@dataclass(frozen=True)
class Bursts:
    """The Gilbert–Elliott model. `enter` and `leave` are probabilities per frame."""

    enter: float = number(_POSITIVE_SHARE, _is_positive_share, 0.0)
    leave: float = number(_POSITIVE_SHARE, _is_positive_share, 0.0)
    loss_good: float = number(_SHARE, _is_share, 0.0)
    loss_bad: float = number(_SHARE, _is_share, 1.0)


@dataclass(frozen=True)
class Direction:
    """The parameters of one direction at one time."""

    delay_ms: float = number(_TIME, _is_time, 0.0)
    jitter_ms: float = number(_TIME, _is_time, 0.0)
    jitter_shape: str = given(", ".join(SHAPES), "uniform", allows=SHAPES.__contains__)
    reorders: bool = given("true or false", False)
    loss: float = number(_SHARE, _is_share, 0.0)
    bursts: Bursts | None = given("a table", None, kind=dict)
    rate_mbit_s: float | None = number(
        f"{RATE_MBIT_S_MIN:g} to {RATE_MBIT_S_MAX:g} Mbit/s",
        lambda rate: RATE_MBIT_S_MIN <= rate <= RATE_MBIT_S_MAX,
    )
    queue_bytes: int = given(
        f"an integer from 0 to {QUEUE_BYTES_MAX}", 0,
        allows=lambda size: 0 <= size <= QUEUE_BYTES_MAX,
    )  # fmt: skip
    overhead_bytes: int = given(
        f"an integer from {-HEADER_BYTES} to 100000", 0,
        allows=lambda size: -HEADER_BYTES <= size <= 100_000,
    )  # fmt: skip
    trace: str = given("the name of a file in the link's folder", "")

    @property
    def is_limited(self) -> bool:
        """Return whether frames wait for their transmission."""
        return self.rate_mbit_s is not None or bool(self.trace)

    @property
    def rate_bit_s(self) -> int | None:
        return None if self.rate_mbit_s is None else round(self.rate_mbit_s * 1e6)


@dataclass(frozen=True)
class Segment:
    """The parameters from a time of the window until the next segment."""

    at_s: float
    direction: Direction


@dataclass(frozen=True)
class Course:
    """A direction over the window, with the delivery opportunities of its trace in ms."""

    segments: tuple[Segment, ...]
    opportunities_ms: tuple[int, ...] = ()


@dataclass(frozen=True)
class Link:
    """A validated profile of a link."""

    name: str
    title: str
    summary: str
    half_duplex: bool
    up: Course
    down: Course

    def course(self, direction: str) -> Course:
        """Return the course of "up" or "down"."""
        return self.up if direction == DIRECTIONS[0] else self.down


@dataclass(frozen=True)
class _Head:
    title: str = needed("a string")
    summary: str = needed("a string")
    medium: str = given(", ".join(MEDIA), MEDIA[0], allows=MEDIA.__contains__)


@dataclass(frozen=True)
class _Moment:
    at_s: float = number(_AT, lambda at: AT_S_MIN <= at <= AT_S_MAX, 0.0)
    direction: str = given(", ".join(_PLACES), "both", allows=_PLACES.__contains__)


def read_link(
    name: str, document: Mapping[str, Any], place: str, read_file: Callable[[str], str]
) -> Link:
    """Return a validated profile of link.toml.

    `read_file` returns the text of a file in the link's folder. Raises UsageError with file, key,
    value and allowed values.
    """
    heads = {field.name for field in fields(_Head)}
    for key, value in document.items():
        if key not in heads | {"change", *_PLACES}:
            raise unknown(place, "key", key, heads | {"change", *_PLACES})
        if key in _PLACES and not isinstance(value, Mapping):
            raise UsageError(f"{place}: {key}: found {value!r}; allowed: a table")
    head = read_table(_Head, {k: v for k, v in document.items() if k in heads}, place)
    for key, text in (("title", head.title), ("summary", head.summary)):
        if not text:
            raise UsageError(f"{place}: {key}: found nothing; allowed: a string")
    link = Link(
        name, head.title, head.summary, head.medium == MEDIA[1],
        *(_read_course(direction, document, place, read_file) for direction in DIRECTIONS),
    )  # fmt: skip
    if link.half_duplex:
        _check_shared_medium(link, place)
    return link


def _check_shared_medium(link: Link, place: str) -> None:
    for name in DIRECTIONS:
        for segment in link.course(name).segments:
            if segment.direction.rate_mbit_s is None:
                raise UsageError(
                    f"{place}: {name}.rate_mbit_s: found nothing; allowed with medium "
                    f'"{MEDIA[1]}": a rate in both directions, without a trace'
                )


def _read_course(
    name: str, document: Mapping[str, Any], place: str, read_file: Callable[[str], str]
) -> Course:
    table = merge(dict(document.get("both", {})), dict(document.get(name, {})))
    first = read_direction(table, f"{place}: {name}")
    segments = [Segment(0.0, first)]
    changes = document.get("change", [])
    if not isinstance(changes, list) or not all(isinstance(c, Mapping) for c in changes):
        raise UsageError(f"{place}: change: found {changes!r}; allowed: [[change]] tables")
    for position, change in enumerate(changes, 1):
        where = f"{place}: change {position}"
        moment = read_table(
            _Moment, {k: v for k, v in change.items() if k in ("at_s", "direction")}, where
        )
        if not moment.at_s:
            raise UsageError(f"{where}: at_s: found nothing; allowed: {_AT}")
        if moment.direction not in ("both", name):
            continue
        values = {k: v for k, v in change.items() if k not in ("at_s", "direction")}
        if "trace" in values:
            raise UsageError(
                f"{where}: trace: found {values['trace']!r}; allowed in a change: nothing, "
                "because a trace contains its own changes"
            )
        if moment.at_s <= segments[-1].at_s:
            raise UsageError(
                f"{where}: at_s: found {moment.at_s:g}; allowed: above {segments[-1].at_s:g}, the "
                "time of the change before"
            )
        table = merge(table, values)
        segments.append(Segment(moment.at_s, read_direction(table, where)))
    opportunities: tuple[int, ...] = ()
    if first.trace:
        opportunities = read_trace(read_file(first.trace), f"{place}: {name}.trace: {first.trace}")
    return Course(tuple(segments), opportunities)


def read_direction(table: Mapping[str, Any], place: str) -> Direction:
    """Return the validated parameters of a direction; `place` names them in errors."""
    direction = read_table(Direction, table, place, dot=".")
    if "bursts" in table:
        bursts = read_table(Bursts, table["bursts"], f"{place}.bursts", dot=".")
        for key in ("enter", "leave"):
            if key not in table["bursts"]:
                raise UsageError(f"{place}.bursts.{key}: found nothing; allowed: {_POSITIVE_SHARE}")
        direction = replace(direction, bursts=bursts)
    _check_direction(direction, place)
    return direction


def _check_direction(direction: Direction, place: str) -> None:
    """Raise UsageError for values that contradict each other."""
    if direction.bursts is not None and direction.loss:
        raise UsageError(
            f"{place}.loss: found {direction.loss:g}; allowed with bursts: nothing, because "
            "bursts.loss_good and bursts.loss_bad are the losses"
        )
    if direction.jitter_shape == SHAPES[0] and direction.jitter_ms > direction.delay_ms:
        raise UsageError(
            f"{place}.jitter_ms: found {direction.jitter_ms:g}; allowed: at most delay_ms, "
            f"{direction.delay_ms:g}, because no frame leaves before it arrives"
        )
    if direction.trace and direction.rate_mbit_s is not None:
        raise UsageError(
            f"{place}.rate_mbit_s: found {direction.rate_mbit_s:g}; allowed with a trace: nothing"
        )
    if direction.is_limited and direction.queue_bytes < FRAME_BYTES_MAX:
        raise UsageError(
            f"{place}.queue_bytes: found {direction.queue_bytes}; allowed: {FRAME_BYTES_MAX} or "
            "more, because the queue has to hold a frame"
        )
    if not direction.is_limited:
        for key in ("queue_bytes", "overhead_bytes"):
            if getattr(direction, key):
                raise UsageError(
                    f"{place}.{key}: found {getattr(direction, key)}; allowed without rate_mbit_s "
                    "and trace: nothing, because no frame waits"
                )


def read_trace(text: str, place: str) -> tuple[int, ...]:
    """Return the times of a delivery trace in ms. Raises UsageError with the line of a fault."""
    times: list[int] = []
    for line_number, line in enumerate(text.splitlines(), 1):
        where = f"{place}:{line_number}"
        digits = line.strip().lstrip("0") or "0"
        is_time = line.strip().isascii() and line.strip().isdigit()
        if not is_time or len(digits) > len(str(TRACE_MS_MAX)) or int(digits) > TRACE_MS_MAX:
            raise UsageError(
                f"{where}: found {line[:40]!r}; allowed: an integer from 0 to {TRACE_MS_MAX}, in ms"
            )
        time_ms = int(digits)
        if times and time_ms < times[-1]:
            raise UsageError(
                f"{where}: found {time_ms}; allowed: {times[-1]} or more, because times do not fall"
            )
        times.append(time_ms)
    if not times or times[-1] == 0:
        raise UsageError(f"{place}: found no time above 0; allowed: one delivery time per line")
    return tuple(times)
