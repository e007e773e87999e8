"""Compare the power of two sources of energy that cover the same runs.

How: the ratio of the powers in the window, per run. The geometric mean has a t interval over runs.
The difference has a t interval, too, and is compared with the sum of what both vendors state for
their meters at this power. Two sources disagree if the whole interval is beyond this sum.
A meter outside has its own clock. In a campaign with loads (--align), its readings at them give its
offset, and thus the energy of each run with a bound (`wattwire.analysis.aligned_energy`). Meters
inside the machine share our clock and are not aligned.
What it misses: a source inside the machine, such as the processor's counter, has no class here, and
it measures a part of what a meter at the socket measures. Its ratio is then no disagreement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from wattwire.analysis.aligned_energy import LoadOffset, WindowEnergy
from wattwire.analysis.dataset import Evidence, column, window_seconds
from wattwire.analysis.topics.source_agreement.aligned_meters import Facts, aligned_meters
from wattwire.model.outside_meters import AccuracyClass
from wattwire.stats import Interval, NotComputable, TooFew
from wattwire.stats.blocked import geometric_mean, mean_interval

FIRST, SECOND = "energy_source", "energy_source_second"
FIRST_W, SECOND_W = "power_window_w", "power_window_second_w"
SILENT_W = "power_silent_w"
RUNS_MIN = 3
SEVERAL = " and "
"""Between the names of sources whose powers a run on a rig adds."""
NS_PER_S = 1e9
Estimate = Interval | TooFew | NotComputable


@dataclass(frozen=True)
class Pair:
    """Two sources over the runs that both cover; the first one is used for energy.

    `ratio` is the second power divided by the first one, `difference_w` the second minus the first.
    `allowed_w` is the sum of what both vendors state at this power; None if one states nothing. The
    powers are medians over runs. They and `allowed_w` are None without a run whose energy is from
    the first source.
    """

    first: str
    second: str
    runs: int
    first_w: float | None
    second_w: float | None
    ratio: Estimate
    difference_w: Estimate
    allowed_w: float | None

    @property
    def disagrees(self) -> bool:
        """Whether the whole interval of the difference is beyond what both vendors state."""
        difference = self.difference_w
        if self.allowed_w is None or not isinstance(difference, Interval):
            return False
        return difference.low > self.allowed_w or difference.high < -self.allowed_w

    @property
    def has_ratio(self) -> bool:
        """Whether the ratio has an interval: none of the sources measured 0 W."""
        return isinstance(self.ratio, Interval)

    @property
    def direction(self) -> str:
        """Return whether the second source measured "more" or "less" than the first one."""
        difference = self.difference_w
        return "less" if isinstance(difference, Interval) and difference.estimate < 0 else "more"

    @property
    def apart_w(self) -> Estimate:
        """Return the difference, with the sign that is positive in its `direction`."""
        value = self.difference_w
        if not isinstance(value, Interval) or self.direction == "more":
            return value
        return replace(value, estimate=-value.estimate, low=-value.high, high=-value.low)


@dataclass(frozen=True)
class Bound:
    """The bound of the power (W) in the window from a meter outside the machine, in its two parts.

    It is an estimate for the median run, and it assumes that no record is missing. `class_w` is
    what the vendor states at this power. `edges_w` is the step of the power at both ends of the
    window, for as long as a reading may be old.
    """

    source: str
    runs: int
    power_w: float
    class_w: float
    edges_w: float

    @property
    def bound_w(self) -> float:
        """The sum of both parts (W): they are bounds, so they are added linearly."""
        return self.class_w + self.edges_w

    @property
    def share(self) -> float:
        """The bound as a share of the power."""
        return self.bound_w / self.power_w if self.power_w else np.inf


@dataclass(frozen=True)
class Answering:
    """The answers of a meter outside the machine in all runs, and its most frequent fault.

    `cpu_share` is the share of a core that its thread used, unless no run has a tick, which leaves
    the time of the sampling unknown. `fault` is "" without a fault.
    """

    meter: str
    answers: int
    faults: int
    cpu_share: float | NotComputable
    fault: str


@dataclass(frozen=True)
class SourceAgreement:
    """All pairs of sources, and the bounds of meters outside. `is_measured`: not imported data."""

    is_measured: bool = False
    pairs: tuple[Pair, ...] = ()
    bounds: tuple[Bound, ...] = ()
    answering: tuple[Answering, ...] = ()
    clocks: tuple[LoadOffset, ...] = ()
    energies: tuple[WindowEnergy, ...] = ()


def source_agreement(evidence: Evidence) -> SourceAgreement:
    """Return the pairs of sources of the valid runs."""
    if evidence.imported:
        return SourceAgreement()
    aligned = tuple(aligned_meters(evidence, _facts(evidence)))
    energies = tuple(energy for meter in aligned for energy in meter.energies)
    bounded = {energy.source for energy in energies if energy.joules is not None}
    return SourceAgreement(
        True,
        tuple(pairs_of(evidence)),
        tuple(bound for bound in _bounds(evidence) if bound.source not in bounded),
        tuple(_answering(evidence)),
        tuple(clock for meter in aligned for clock in meter.clocks),
        energies,
    )


def _answering(evidence: Evidence) -> Iterator[Answering]:
    names = [meter["name"] for meter in evidence.reader.machine.get("outside_meters", [])]
    for name in dict.fromkeys(names):
        infos, seconds = [], 0.0
        for sampling in _samplings(evidence):
            series = [s for s in sampling.get("series", []) if s["meter"] == name]
            if series:
                infos.append(series[0]["info"])
                seconds += sampling["ticks"] * sampling["period_ns"] / NS_PER_S
        texts: Counter[str] = Counter()
        for info in infos:
            texts.update(info.get("fault_texts", {}))
        answers, faults, cpu_ns = (
            sum(info.get(key, 0) for info in infos)
            for key in ("answers", "faults", "thread_cpu_ns")
        )
        fault = texts.most_common(1)[0][0] if texts else ""
        cpu_share: float | NotComputable = NotComputable("no run has a tick of the sampling")
        if seconds:
            cpu_share = cpu_ns / NS_PER_S / seconds
        yield Answering(name, answers, faults, cpu_share, fault)


def _samplings(evidence: Evidence) -> Iterator[Mapping[str, Any]]:
    """Yield the sampling of each host of each run."""
    for document in evidence.runs.values():
        # Only a run on a rig has a document per host.
        hosts = document.get("hosts", {}).values() or [document]
        yield from (host.get("sampling", {}) for host in hosts)


def _bounds(evidence: Evidence) -> Iterator[Bound]:
    frame = evidence.usable
    meters = _facts(evidence)
    if FIRST not in frame.columns or not meters:
        return
    measured = frame.filter(pl.col(FIRST).is_not_null() & pl.col(FIRST_W).is_not_null())
    for (source,), runs in measured.group_by(FIRST, maintain_order=True):
        meter = meters.get(str(source).split("/")[0])
        if meter is None:
            continue
        powers_w, silent_w = column(runs, FIRST_W), column(runs, SILENT_W)
        windows_s = window_seconds(evidence, runs)
        known = np.isfinite(powers_w) & np.isfinite(silent_w) & np.isfinite(windows_s)
        if not known.any():
            continue
        step_w = float(np.median(np.abs(powers_w - silent_w)[known]))
        power_w, seconds = float(np.median(powers_w[known])), float(np.median(windows_s[known]))
        edges_w = 2 * step_w * meter.window_s / seconds
        class_w = meter.accuracy.bound_w(power_w)
        yield Bound(str(source), int(known.sum()), power_w, class_w, edges_w)


def _facts(evidence: Evidence) -> dict[str, Facts]:
    """Return the facts of each meter outside, by its name.

    A run on a rig adds the powers of all measured machines, so the powers (W) that the vendors
    state for their meters of one name are added, and the largest share applies to the sum.
    """
    meters = evidence.reader.machine.get("outside_meters", [])
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for meter in meters:
        by_name.setdefault(meter["name"], []).append(meter)
    return {
        name: Facts(
            AccuracyClass(max(m["share"] for m in of_name), sum(m["watts"] for m in of_name)),
            max(m["window_s"] for m in of_name),
        )
        for name, of_name in by_name.items()
    }


def pairs_of(evidence: Evidence) -> Iterator[Pair]:
    """Yield each pair of sources of the valid runs. Imported data have none.

    Machines of a rig with different sources have no pair, because a sum has no class.
    """
    frame = evidence.usable
    if SECOND not in frame.columns:
        return
    classes = {name: facts.accuracy for name, facts in _facts(evidence).items()}
    covered = frame.filter(pl.col(FIRST).is_not_null() & pl.col(SECOND).is_not_null())
    for names, runs in covered.group_by(FIRST, SECOND, maintain_order=True):
        first, second = map(str, names)
        if SEVERAL in first or SEVERAL in second:
            continue
        yield pair(first, second, column(runs, FIRST_W), column(runs, SECOND_W), classes)


def pair(
    first: str,
    second: str,
    first_w: np.ndarray,
    second_w: np.ndarray,
    classes: Mapping[str, AccuracyClass],
) -> Pair:
    """Return the pair of two sources (METER/QUANTITY) from their powers (W) per run."""
    both = np.isfinite(first_w) & np.isfinite(second_w)
    first_w, second_w = first_w[both], second_w[both]
    stated = [classes.get(name.split("/")[0]) for name in (first, second)]
    first_median_w, second_median_w = (
        float(np.median(powers_w)) if powers_w.size else None for powers_w in (first_w, second_w)
    )
    bounds_w = [
        accuracy.bound_w(power_w)
        for accuracy, power_w in zip(stated, (first_median_w, second_median_w), strict=True)
        if accuracy is not None and power_w is not None
    ]
    difference_w = mean_interval(second_w - first_w) if first_w.size else 0.0
    return Pair(
        first,
        second,
        int(first_w.size),
        first_median_w,
        second_median_w,
        _ratio({first: first_w, second: second_w}),
        difference_w
        if isinstance(difference_w, Interval)
        else TooFew(int(first_w.size), RUNS_MIN, "runs"),
        sum(bounds_w) if len(bounds_w) == len(stated) else None,
    )


def _ratio(powers_w: Mapping[str, np.ndarray]) -> Estimate:
    """Return the second source's powers divided by the first one's, as a mean over runs."""
    for name, values_w in powers_w.items():
        if count := int(np.sum(values_w <= 0)):
            runs = f"{count} of {values_w.size} runs"
            return NotComputable(f"{name} measured no power in {runs}; is the meter in the supply?")
    first_w, second_w = powers_w.values()
    return geometric_mean(second_w / first_w)
