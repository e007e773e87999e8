"""Relate energy to time and resources by associations, energy–delay products and Pareto fronts.

Points are treatments, as medians over their runs, because runs of a treatment are not independent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis.charts import Chart, Point, panels_per_row, points_of, titles_of
from wattwire.analysis.dataset import (
    Evidence,
    by_treatment,
    levels_in,
    levels_of,
    levels_run,
    same_level,
)
from wattwire.analysis.responses import resolve
from wattwire.model import words
from wattwire.model.derived import FloatArray, column
from wattwire.stats import association
from wattwire.stats.association import Association

ENERGY_OF_RUN = "energy_uj_per_message"
"""Measured energy per message of a run, which is correlated with the run's other responses."""
ENERGY_OF_ROLE = re.compile(r"energy(_\w+)?_j(\..+)?")
DELAYS = ("elapsed_s", "duration_s", "latency_p50_us")
RESOURCES = (
    (r"elapsed_s|duration_s|latency_p50_us", "time"),
    (r"cpu_(us_per_message|share|percent|s|time_s)", "CPU time"),
    (r"memory(_max)?_kib(_per_node|_total)?", "memory"),
    (r"faults_\w+|page_faults\w*", "page faults"),
    (r"switches_\w+|context_switches\w*", "context switches"),
)
CHARTS_MAX = 2
PROPORTION = (0.8, 1.2)
"""Range that must contain the exponent's interval for the conclusion "about proportional"."""
IN_PROPORTION, NOT_IN_PROPORTION, CANNOT_TELL = "in proportion", "not in proportion", "cannot tell"
GROWS, FALLS = "grows", "falls"
Exponent = stats.Interval | stats.TooFew | stats.NotComputable


@dataclass(frozen=True)
class Coefficient:
    """A correlation coefficient, or the reason why there is none."""

    result: Association | stats.TooFew | stats.NotComputable

    @property
    def value(self) -> Exponent | None:
        """Its interval, or the reason why there is no coefficient; None without an interval."""
        if not isinstance(self.result, Association):
            return self.result
        interval = self.result.interval
        return interval if isinstance(interval, stats.Interval) else None


@dataclass(frozen=True)
class Against:
    """The association of an energy with a quantity over the treatments of a stratum.

    `where` is the title of the stratum, and `kind` that of the quantity. `points` is the number of
    treatments with both. `reading` is the conclusion from the exponent; "" without an interval.
    `inside` is the correlation of the logarithms over runs, within the treatments.
    """

    where: str
    kind: str
    energy: str
    quantity: str
    points: int
    exponent: Exponent
    reading: str
    spearman: Coefficient
    pearson: Coefficient
    inside: Coefficient


@dataclass(frozen=True)
class WithoutPoints:
    """A stratum ("" if there is only one) and the quantities that no treatment has with energy."""

    where: str
    quantities: tuple[str, ...]


@dataclass(frozen=True)
class Product:
    """Medians of a treatment's energy and delay, and the geometric mean of their product.

    It is on the Pareto front if every other treatment of the stratum with a lower value of one
    quantity has a higher value of the other.
    """

    treatment: tuple[str, ...]
    runs: int
    energy: float
    delay: float
    product: Exponent
    is_on_front: bool


@dataclass(frozen=True)
class EnergyDelay:
    """The products of an energy and its delay, sorted by product in each stratum.

    `number` is that of the energy, from 1 on. Only the first CHARTS_MAX energies have a chart.
    """

    number: int
    energy_title: str
    energy_unit: str
    delay_title: str
    delay_unit: str
    products: tuple[Product, ...]
    chart: Chart | None

    @property
    def product_unit(self) -> str:
        """The unit of the product."""
        return f"{self.energy_unit}·{self.delay_unit}"


@dataclass(frozen=True)
class Energy:
    """The relation of energy to time and resources.

    `is_asked` is false if no run is valid or no factor varies, and `is_measured` if no meter
    measured energy. With `is_of_process`, a meter may have divided it by CPU time.
    """

    is_asked: bool = False
    is_measured: bool = False
    is_of_process: bool = False
    strata: int = 0
    against: tuple[Against, ...] = ()
    without_points: tuple[WithoutPoints, ...] = ()
    products: tuple[EnergyDelay, ...] = ()
    proportion: tuple[float, float] = PROPORTION

    @property
    def has_strata(self) -> bool:
        """Whether any association is that of one of several strata."""
        return any(row.where for row in self.against)


@dataclass(frozen=True)
class Subject:
    """An energy column, its delay column and its correlates, for the same runs."""

    energy: str
    delay: str | None
    beside: tuple[tuple[str, str], ...]
    """(column, kind of quantity) of each correlated response. Kinds are time, memory and so on."""


@dataclass(frozen=True)
class _Stratum:
    """Comparable runs, which are all runs or the runs at one level of a factor."""

    title: str
    frame: pl.DataFrame = field(repr=False)


def energy(evidence: Evidence) -> Energy:
    """Return the relation of each measured energy to time and resources."""
    if evidence.usable.height == 0 or not evidence.varied:
        return Energy()
    measured = subjects(evidence)
    if not measured:
        return Energy(is_asked=True)
    strata = _strata(evidence)
    rows = list(_associations(evidence, measured, strata))
    return Energy(
        True,
        True,
        measured[0].energy != ENERGY_OF_RUN,
        len(strata),
        tuple(row for row in rows if row.points),
        tuple(_without_points(rows)),
        tuple(_products(evidence, measured, strata)),
    )


def subjects(evidence: Evidence) -> list[Subject]:
    """Return the measured energies of this campaign, each with its delay and correlates.

    The energy per message of a run is correlated with the other responses of the run. If it is
    missing, each column `energy_j.<role>.<number>` is correlated with columns of the same role and
    number. Estimates are excluded.
    """
    frame = evidence.usable
    known = [name for name in frame.columns if _known(frame, name)]
    if evidence.imported:  # derived columns would repeat imported columns
        known = [name for name in known if name in evidence.described]
    if ENERGY_OF_RUN in known:
        return [_subject(ENERGY_OF_RUN, [name for name in known if "." not in name])]
    energies = [name for name in known if ENERGY_OF_ROLE.fullmatch(name)]
    candidates = []
    for name_of_energy in energies:
        if "estimate" in name_of_energy or _kind(evidence, name_of_energy) == "estimate":
            continue
        suffix = name_of_energy.partition(".")[2]
        same_role = [name for name in known if name.partition(".")[2] == suffix]
        subject = _subject(name_of_energy, same_role)
        # Delay is the waiting time of a client. A server's elapsed time may include other work.
        has_energy = np.isfinite(column(frame, name_of_energy))
        client_times = [name for name in known if re.fullmatch(r"elapsed_s\.client\.\d+", name)
                        and (has_energy & np.isfinite(column(frame, name))).any()]  # fmt: skip
        delay = client_times[0] if client_times else subject.delay
        candidates.append(Subject(name_of_energy, delay, subject.beside))
    return [subject for subject in candidates if subject.beside or subject.delay]


def _subject(name_of_energy: str, names: Sequence[str]) -> Subject:
    correlates = [
        (name, kind)
        for pattern, kind in RESOURCES
        for name in names
        if re.fullmatch(pattern, name.partition(".")[0])
    ]
    delays = [name for stem in DELAYS for name in names if name.partition(".")[0] == stem]
    return Subject(name_of_energy, delays[0] if delays else None, tuple(correlates))


def _known(frame: pl.DataFrame, name: str) -> bool:
    if not frame[name].dtype.is_numeric():
        return False
    return bool(np.isfinite(column(frame, name)).any())


def _kind(evidence: Evidence, name: str) -> str:
    return str(evidence.described.get(name, {}).get("kind", ""))


def _strata(evidence: Evidence) -> list[_Stratum]:
    """Return one stratum per level of the varied factor that no question names.

    Runs at different levels of such a factor, for example a platform, are not comparable. If there
    is not exactly one such factor, all runs form a single stratum.
    """
    compared = {factor for question in evidence.study.questions for factor in question.factors}
    contexts = [name for name in evidence.varied if compared and name not in compared]
    if len(contexts) != 1:
        return [_Stratum("", evidence.usable)]
    name = contexts[0]
    levels = levels_of(evidence.usable, name)
    return [
        _Stratum(
            evidence.title(name, level),
            evidence.usable.filter(
                pl.Series([same_level(run_level, level) for run_level in levels])
            ),
        )
        for level in levels_run(evidence, name)
    ]


def _medians(evidence: Evidence, frame: pl.DataFrame, names: Sequence[str]) -> FloatArray:
    """Return the median of each column over each treatment's runs, shape (treatments, columns)."""
    treatments = list(by_treatment(evidence, frame).values())
    if not treatments:
        return np.empty((0, len(names)))
    ordered = pl.concat(treatments)  # convert each column only once
    ends = np.cumsum([treatment.height for treatment in treatments])[:-1]
    columns = []
    for name in names:
        pieces = np.split(column(ordered, name), ends)
        known = [piece[~np.isnan(piece)] for piece in pieces]
        columns.append([float(np.median(v)) if v.size else np.nan for v in known])
    return np.array(columns, dtype=np.float64).T


# -- associations ----------------------------------------------------------------------------


def _associations(
    evidence: Evidence, measured: Sequence[Subject], strata: Sequence[_Stratum]
) -> Iterator[Against]:
    """Yield each energy against each of its correlates, with or without points."""
    for stratum in strata:
        for subject in measured:
            for name, kind in subject.beside:
                medians = _medians(evidence, stratum.frame, [subject.energy, name])
                medians = medians[~np.isnan(medians).any(axis=1)]
                joules, quantity = medians[:, 0], medians[:, 1]
                power = association.exponent(quantity, joules)
                yield Against(
                    stratum.title,
                    kind,
                    _title(evidence, subject.energy),
                    _title(evidence, name),
                    int(medians.shape[0]),
                    power,
                    proportionality(power),
                    Coefficient(association.spearman(quantity, joules)),
                    Coefficient(association.pearson(quantity, joules)),
                    _within_treatments(evidence, stratum.frame, subject.energy, name),
                )


def _without_points(rows: Sequence[Against]) -> Iterator[WithoutPoints]:
    quantities: dict[str, dict[str, None]] = {}
    for row in rows:
        if not row.points:
            quantities.setdefault(row.where, {}).setdefault(row.quantity)
    for where, names in quantities.items():
        yield WithoutPoints(where, tuple(names))


def _within_treatments(
    evidence: Evidence, frame: pl.DataFrame, name_of_energy: str, name: str
) -> Coefficient:
    joules, quantity = column(frame, name_of_energy), column(frame, name)
    with np.errstate(invalid="ignore"):
        kept = np.isfinite(joules) & np.isfinite(quantity) & (joules > 0) & (quantity > 0)
    treatments = levels_in(frame, evidence.varied)
    return Coefficient(
        association.within_groups(
            np.log(quantity[kept]),
            np.log(joules[kept]),
            [str(treatments[index]) for index in np.flatnonzero(kept)],
        )
    )


def _title(evidence: Evidence, name: str) -> str:
    return resolve(name, evidence.described).title


def proportionality(power: Exponent) -> str:
    """Return the conclusion from the interval of an exponent, or "" if there is no interval."""
    if not isinstance(power, stats.Interval):
        return ""
    if power.excludes(1.0):
        if power.excludes(0.0):
            return GROWS if power.estimate > 0 else FALLS
        return NOT_IN_PROPORTION
    return IN_PROPORTION if power.within(*PROPORTION) else CANNOT_TELL


# -- energy and delay ------------------------------------------------------------------------


def _products(
    evidence: Evidence, measured: Sequence[Subject], strata: Sequence[_Stratum]
) -> Iterator[EnergyDelay]:
    for number, subject in enumerate(measured, 1):
        if subject.delay is None:
            continue
        names = subject.energy, subject.delay
        joules, delay = (resolve(name, evidence.described) for name in names)
        yield EnergyDelay(
            number,
            joules.title,
            joules.unit,
            delay.title,
            delay.unit,
            tuple(
                product for stratum in strata for product in _of_stratum(evidence, names, stratum)
            ),
            _chart(evidence, names, strata) if number <= CHARTS_MAX else None,
        )


def _of_stratum(evidence: Evidence, names: tuple[str, str], stratum: _Stratum) -> list[Product]:
    """Return the products of a stratum's treatments, in ascending order."""
    medians = _medians(evidence, stratum.frame, names)
    front = association.pareto_front(medians[:, 0], medians[:, 1])
    products = []
    for index, (treatment, frame) in enumerate(by_treatment(evidence, stratum.frame).items()):
        values = column(frame, names[0]) * column(frame, names[1])
        known = values[~np.isnan(values)]
        if not np.isnan(medians[index]).any():
            joules, delay = map(float, medians[index])
            mean = stats.geometric_mean(known)
            on_front = bool(front[index])
            products.append(Product(treatment, int(known.size), joules, delay, mean, on_front))
    return sorted(products, key=lambda product: product.energy * product.delay)


def _chart(evidence: Evidence, names: tuple[str, str], strata: Sequence[_Stratum]) -> Chart:
    points: list[Point] = []
    for stratum in strata:
        frame, primary = stratum.frame, evidence.primary
        joules, delays = (column(frame, name) for name in names)
        points += points_of(evidence, frame, delays, joules, primary, stratum.title)
    return Chart(
        points,
        titles_of(evidence, evidence.primary),
        words.factor_title(evidence.primary),
        panels=[stratum.title for stratum in strata],
        per_row=max(1, len(strata)) if len(strata) < 4 else panels_per_row(evidence),
    )
