"""Meters outside the machine: their addresses, averaging times and accuracy classes.

A study does not name them, because the same study runs with and without such a meter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from wattwire.model.errors import UsageError, unknown
from wattwire.model.fields import given, needed, number, read_table

WINDOWS_PER_READING = 20
"""Number of averaging times in the shortest window that a meter can measure."""
SLACK_SHARE = 0.01
"""Share by which a span may be shorter than its meter needs, because no wait is exact."""
WINDOW_S_MAX = 3600.0
CLASS_WORDS = 'a share in % and a power in W, such as "1.5 % + 0.3 W"'
_NUMBER = r"(\d+(?:\.\d+)?)"
_CLASS = re.compile(rf"{_NUMBER}\s*%(?:\s*\+\s*{_NUMBER}\s*W)?|{_NUMBER}\s*W")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
CHIPS, CHIP_S, LEAD_S, REST_S = 63, 2.0, 0.5, 10.0
"""Number and length (s) of the chips of a load that aligns a meter's clock, the time (s) before
them, in which its processes start, and the time after them. Readings come late, so without this
time the baseline of the next run would contain the load."""
LOAD_S = LEAD_S + CHIPS * CHIP_S + REST_S
STREAM = "stream"
"""The tier of meters outside the machine."""


@dataclass(frozen=True)
class AccuracyClass:
    """The bound that a vendor states for a power: a share of the reading plus a power in watts."""

    share: float = 0.0
    watts: float = 0.0

    def bound_w(self, power_w: float) -> float:
        """Return the bound (W) of the error of a power (W)."""
        return self.share * abs(power_w) + self.watts


@dataclass(frozen=True)
class OutsideMeter:
    """A meter that the agent of the measured machine reads at an address."""

    name: str
    at: str
    window_s: float
    """The time over which the meter averages a reading."""
    accuracy: AccuracyClass
    host: str = ""
    """The host of the rig whose machine it measures; "" is this machine."""

    @property
    def shortest_window_s(self) -> float:
        """Return the shortest window (s) whose energy the meter can measure."""
        return WINDOWS_PER_READING * self.window_s

    @property
    def without_address(self) -> dict[str, Any]:
        """Return what a page may contain."""
        return {"name": self.name, "host": self.host, "window_s": self.window_s,
                **asdict(self.accuracy)}  # fmt: skip

    @property
    def private_words(self) -> tuple[str, ...]:
        """Return the texts of the address that a bundle must not contain."""
        if self.at.startswith("/"):
            return (self.at,)
        host = self.at.split(":", 1)[-1].split("/", 1)[0]
        hosts = {host, re.sub(r":\d+$", "", host)}
        return tuple(sorted({self.at, *hosts} - _LOOPBACK - {""}, key=len, reverse=True))


def _is_window(seconds: float) -> bool:
    return math.isfinite(seconds) and 0 < seconds <= WINDOW_S_MAX


@dataclass(frozen=True)
class _MeterTable:
    name: str = needed("the name of a meter of tier stream")
    at: str = needed("the address of the meter")
    read_by: str = given("the measured host", "")
    window_s: float = number(f"above 0 and at most {WINDOW_S_MAX:g} s", _is_window, 1.0)
    class_: str = given(CLASS_WORDS, "")


def accuracy_class(text: str, place: str) -> AccuracyClass:
    """Return the class that a text states. Raise UsageError with its place otherwise."""
    match = _CLASS.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{place}: found {text!r}; allowed: {CLASS_WORDS}")
    percent, watts, only_watts = (float(group or 0.0) for group in match.groups())
    return AccuracyClass(percent / 100.0, watts + only_watts)


def stream_manifests(manifests: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the manifests of the meters outside the machine, by name."""
    return {name: m for name, m in manifests.items() if m.get("tier") == STREAM}


def _meter(
    name: str, at: str, manifests: Mapping[str, Mapping[str, Any]], place: str, **given_values: Any
) -> OutsideMeter:
    known = stream_manifests(manifests)
    if name in manifests and name not in known:
        raise UsageError(
            f"{place}: found {name}, a meter of this machine, which has no address; allowed: "
            f"{', '.join(sorted(known)) or 'no meter'}"
        )
    if name not in known:
        raise unknown(place, "meter", name, known)
    manifest = known[name]
    class_text = given_values.pop("class_text", "") or str(manifest["class"])
    window_s = given_values.pop("window_s", None) or float(manifest["window_s"])
    accuracy = accuracy_class(class_text, f"{place}.class")
    return OutsideMeter(name, at, window_s, accuracy, **given_values)


def meters_of_options(
    words: Sequence[str], manifests: Mapping[str, Mapping[str, Any]]
) -> tuple[OutsideMeter, ...]:
    """Return the meters of the options --meter NAME=ADDRESS."""
    meters = []
    for word in words:
        name, separator, at = word.partition("=")
        if not (separator and name.strip() and at.strip()):
            examples = [f"{n}={m['address']}" for n, m in stream_manifests(manifests).items()]
            raise UsageError(
                f"--meter: found {word!r}; allowed: NAME=ADDRESS, such as "
                f"{' or '.join(sorted(examples)) or 'of a meter of tier stream'}"
            )
        meters.append(_meter(name.strip(), at.strip(), manifests, f"--meter {name.strip()}"))
    return _without_repetition(meters, "--meter")


def meters_of_rig(
    tables: Mapping[str, Any],
    hosts: Collection[str],
    manifests: Mapping[str, Mapping[str, Any]],
    source: str,
) -> tuple[OutsideMeter, ...]:
    """Return the meters of a rig's table [meters], which maps each measured host to its meters."""
    meters = []
    for host, value in tables.items():
        place = f"{source}: meters.{host}"
        if host not in hosts:
            raise unknown(f"{source}: meters", "host", host, hosts)
        for table in value if isinstance(value, list) else [value]:
            if not isinstance(table, Mapping):
                raise UsageError(
                    f"{place}: found {table!r}; allowed: a table such as "
                    f'{{name = "NAME", at = "ADDRESS"}}, or a list of such tables'
                )
            known = {"class_" if key == "class" else key: v for key, v in table.items()}
            read = read_table(_MeterTable, known, place, dot=".")
            if read.read_by not in ("", host):
                raise UsageError(
                    f"{place}.read_by: found {read.read_by!r}; allowed: {host}, the measured host. "
                    "Connect the meter to that host, or reach it over the network from there."
                )
            window_s = read.window_s if "window_s" in table else None
            meters.append(
                _meter(read.name, read.at, manifests, place, class_text=read.class_,
                       window_s=window_s, host=host)
            )  # fmt: skip
    return _without_repetition(meters, f"{source}: meters")


def _without_repetition(meters: Sequence[OutsideMeter], place: str) -> tuple[OutsideMeter, ...]:
    seen: set[tuple[str, str]] = set()
    for meter in meters:
        if (meter.host, meter.name) in seen:
            raise UsageError(
                f"{place}: found {meter.name} twice for one machine; allowed: once, because both "
                "would have the same rank among the sources of energy. Remove one of them."
            )
        seen.add((meter.host, meter.name))
    return tuple(meters)


def by_machine(
    meters: Sequence[OutsideMeter], boots: Mapping[str, str], here_boot: str
) -> dict[str, dict[str, OutsideMeter]]:
    """Return boot → name → meter. `boots` maps hosts to boots, so one machine has one boot.

    Raise UsageError for two addresses of one meter for one machine.
    """
    meters_of: dict[str, dict[str, OutsideMeter]] = {}
    for meter in meters:
        boot = boots.get(meter.host, "") if meter.host else here_boot
        other = meters_of.setdefault(boot, {}).setdefault(meter.name, meter)
        if boot and other.at != meter.at:
            hosts = " and ".join(m.host or "this machine" for m in (other, meter))
            raise UsageError(
                f"meter {meter.name}: found two addresses for one machine ({hosts}); allowed: one "
                "address, because a machine has one meter of a name. Remove one of them."
            )
    return meters_of


def stored(meters: Sequence[OutsideMeter]) -> list[dict[str, Any]]:
    """Return the meters as a JSON document, with their addresses."""
    return [asdict(meter) for meter in meters]


def restored(document: Sequence[Mapping[str, Any]]) -> tuple[OutsideMeter, ...]:
    """Return the meters of a document of `stored`."""
    return tuple(
        OutsideMeter(**{**entry, "accuracy": AccuracyClass(**entry["accuracy"])})
        for entry in document
    )
