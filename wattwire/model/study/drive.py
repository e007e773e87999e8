"""Parse the table `[drive]` of a study: the commands that a robot gets, and its watchdog.

The commands repeat the legs of the table at the rate of the study: command k is that of the leg at
k periods. A robot obeys each command until the next one arrives, or its watchdog stops it.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wattwire.model.errors import UsageError
from wattwire.model.fields import given, number, read_table

DRIVE = "drive"
LAPS_MIN = 2
"""Drift is the distance of the last lap from the first one."""
_SAME_PERIODS = 1e-6
"""Largest deviation of a leg from a whole number of periods, in periods."""
_CLOSED_M, _CLOSED_DEG = 1e-3, 1e-6
"""Largest distance (m) and deviation of the heading (°) from the start at the end of a lap."""


@dataclass(frozen=True)
class Leg:
    """A part of a lap with constant velocities."""

    seconds: float = number("a finite number above 0", lambda value: 0 < value < math.inf, 0.0)
    m_per_s: float = number("a number", math.isfinite, 0.0)
    deg_per_s: float = number("a number", math.isfinite, 0.0)


@dataclass(frozen=True)
class Drive:
    """The programme of a robot: a lap is `legs`, `repeats` times.

    The watchdog stops the robot when no command has arrived for `watchdog_s`. `flow` is the flow
    with the commands, in a study with flows.
    """

    legs: tuple[Leg, ...] = given("a list of tables {seconds, m_per_s, deg_per_s}", (), items=Leg)
    repeats: int = given("an integer of 1 or more", 1, allows=lambda value: value >= 1)
    watchdog_s: float = number("a finite number above 0", lambda value: 0 < value < math.inf, 0.5)
    flow: str = given("the name of a flow")

    @property
    def lap_s(self) -> float:
        """Return the duration of a lap (s)."""
        return self.repeats * sum(leg.seconds for leg in self.legs)

    def laps(self, duration_s: float) -> int:
        """Return the number of whole laps within `duration_s` (s)."""
        return math.floor(duration_s / self.lap_s + _SAME_PERIODS)

    def velocities(self, period_s: float) -> list[tuple[float, float]]:
        """Return the speed (m/s) and the turn (rad/s) of each command of a lap, in their order."""
        return [
            (leg.m_per_s, math.radians(leg.deg_per_s))
            for leg in self.legs * self.repeats
            for _ in range(round(leg.seconds / period_s))
        ]

    def end_of_lap(self, period_s: float) -> tuple[float, float]:
        """Return the distance (m) from the start and the heading (°) after a lap without delays.

        Each leg is an arc of a circle, whose chord has the direction of the mean heading.
        """
        place, heading = 0j, 0.0
        for leg in self.legs * self.repeats:
            seconds = round(leg.seconds / period_s) * period_s
            half = math.radians(leg.deg_per_s) * seconds / 2
            chord_m = leg.m_per_s * seconds * (math.sin(half) / half if half else 1.0)
            place += cmath.rect(chord_m, heading + half)
            heading += 2 * half
        return abs(place), math.degrees(heading)


def parse_drive(table: Any, where: str) -> Drive | None:
    """Parse the table `[drive]`; None if the study has none.

    Raises UsageError with the position, the value and the allowed values.
    """
    if table is None:
        return None
    place = f"{where}: {DRIVE}"
    if not isinstance(table, Mapping):
        raise UsageError(f"{place}: found {table!r}; allowed: a table [{DRIVE}]")
    drive = read_table(Drive, table, place, dot=".")
    if not drive.legs or any(leg.seconds <= 0 for leg in drive.legs):
        raise UsageError(
            f"{place}.legs: found {table.get('legs', 'nothing')!r}, so the robot gets no command; "
            "allowed: a list of legs of more than 0 s, as {seconds = 3.0, m_per_s = 0.3}"
        )
    return drive


def check_drive(
    drive: Drive, periods_s: Mapping[str, float], duration_s: float, where: str
) -> None:
    """Raise UsageError unless the commands can be sent, obeyed and compared.

    `periods_s` maps the levels of the rate, as written, to periods (s).
    """
    place = f"{where}: {DRIVE}"
    for level, period_s in periods_s.items():
        if drive.watchdog_s <= period_s:
            raise UsageError(
                f"{place}.watchdog_s: found {drive.watchdog_s:g} s, which is not more than the "
                f"period of {period_s:g} s ({level}), so the robot would stop before each command "
                f"that is a little late; allowed: more than {period_s:g}"
            )
        for position, leg in enumerate(drive.legs, 1):
            periods = leg.seconds / period_s
            if round(periods) < 1 or abs(periods - round(periods)) > _SAME_PERIODS * periods:
                raise UsageError(
                    f"{place}.legs {position}: seconds: found {leg.seconds:g}, which is "
                    f"{periods:g} periods of {period_s:g} s ({level}); allowed: a whole number of "
                    "periods, one per command"
                )
    if drive.laps(duration_s) < LAPS_MIN:
        raise UsageError(
            f"{where}: plan.duration_s: found {duration_s:g}, less than {LAPS_MIN} laps of "
            f"{drive.lap_s:g} s, whose distance is the drift; allowed: "
            f"{LAPS_MIN * drive.lap_s:g} or more"
        )
    for level, period_s in periods_s.items():
        apart_m, heading_deg = drive.end_of_lap(period_s)
        if apart_m > _CLOSED_M or abs(math.remainder(heading_deg, 360.0)) > _CLOSED_DEG:
            raise UsageError(
                f"{place}.legs: found a lap that ends {apart_m:.3g} m from its start with a "
                f"heading of {heading_deg:.9g}° ({level}); allowed: at most {_CLOSED_M:g} m and a "
                "multiple of 360°, because the distance between laps that do not close is not "
                "drift; change the legs, or repeat them until the robot is back (repeats)"
            )
