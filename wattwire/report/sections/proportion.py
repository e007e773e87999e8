"""Relate energy to time and resources by associations, energy–delay products and Pareto fronts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis.charts import panels_per_row, points_of, titles_of
from wattwire.analysis.dataset import Evidence, by_treatment, levels_of, levels_run, same_level
from wattwire.analysis.responses import Response, resolve
from wattwire.model import words
from wattwire.model.derived import FloatArray, column
from wattwire.report import figures
from wattwire.report.page_parts import PagePart
from wattwire.report.parts import Column, Figure, Fold, Section, Table, Text
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.words.correlation import PROPORTION, proportionality
from wattwire.report.words.phrases import Phrases, joined
from wattwire.stats import association

PHRASES = Phrases(
    "proportion",
    {
        "title": "Is energy proportional to time and resources?",
        "no_energy": (
            "This question has no answer here, because no meter measured energy. An energy "
            "estimate from CPU time would be proportional to CPU time by construction."
        ),
        "lead": (
            "Association is not proportionality. Energy is proportional to a quantity if b is 1 in "
            "the model energy ~ quantity to the power of b. Each point is a treatment (the median "
            "over its runs), not a run."
        ),
        "table": "Energy against time and resources",
        "rho": "{rho:number} ({p:p 3}, {method})",
        "note": (
            "The 95 % intervals are not corrected for multiple comparisons, so they are "
            "exploratory. Rank intervals need at least ten treatments. “About proportional”: the "
            "whole interval of b is between {low:g} and {high:g}; “cannot tell”: the interval "
            "includes 1 and extends beyond these limits. “Within treatments”: the correlation over "
            "runs after the mean of the treatment is subtracted from each run."
        ),
        "without_points": "No treatment has values of energy and {quantities:listed}.",
        "without_points_of": (
            "No treatment of {where} has values of energy and {quantities:listed}."
        ),
        "shared_by_cpu": (
            "Some meters divide the energy of a machine among its processes by CPU time, for "
            "example software meters for single processes. With such a meter, energy correlates "
            "with CPU time by construction."
        ),
        "fold": "Energy–delay products and Pareto fronts",
        "scatter": "{energy:capital} against {delay}",
        "scatter_caption": (
            "Small points are runs; large points are the medians of the treatments. Points closer "
            "to the lower left corner are better in both quantities. The figure omits runs that "
            "lack a positive value of either quantity."
        ),
        "products": "{energy:capital} times {delay}",
        "products_note": (
            "Values are medians over runs. The product is a geometric mean over runs, with a 95 % "
            "t interval if three or more runs have both values. “On the front”: every other "
            "treatment with a lower value of one quantity has a higher value of the other. For "
            "differences between neighbours, see the answers. Rows are sorted by product."
        ),
        "products_note_of_many": (
            "Values are medians over runs. The product is a geometric mean over runs, with a 95 % "
            "t interval if three or more runs have both values. “On the front”: every other "
            "treatment of the same group with a lower value of one quantity has a higher value of "
            "the other. For differences between neighbours, see the answers. Rows are sorted by "
            "product."
        ),
    },
)

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
FIGURES_MAX = 2


@dataclass(frozen=True)
class Subject:
    """An energy column, its delay column and its correlates, for the same runs."""

    energy: str
    delay: str | None
    beside: tuple[tuple[str, str], ...]
    """(column, kind of quantity) of each correlated response. Kinds are time, memory and so on."""


def section(evidence: Evidence) -> Section | None:
    """Return the section on proportionality.

    The result is None if no run is valid or no factor varies.
    """
    if evidence.usable.height == 0 or not evidence.varied:
        return None
    part = Section("proportion", PHRASES("title"))
    energies = subjects(evidence)
    if not energies:
        part.has_no_data = True
        part.parts.append(Text(PHRASES("no_energy")))
        return part
    strata = _strata(evidence)
    part.parts.append(Text(PHRASES("lead")))
    part.parts.append(_associations(evidence, energies, strata))
    if energies[0].energy != ENERGY_OF_RUN:
        part.parts.append(Text(PHRASES("shared_by_cpu"), "note"))
    fronts: list[Figure | Table] = []
    for number, subject in enumerate(energies, 1):
        if subject.delay is not None:
            if number <= FIGURES_MAX:
                fronts.append(_scatter(evidence, subject, subject.delay, strata, number))
            fronts.append(_products(evidence, subject, subject.delay, strata, number))
    if fronts:
        part.parts.append(Fold(PHRASES("fold"), fronts))
    return part


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
    for energy in energies:
        if "estimate" in energy or _kind(evidence, energy) == "estimate":
            continue
        suffix = energy.partition(".")[2]
        same_role = [name for name in known if name.partition(".")[2] == suffix]
        subject = _subject(energy, same_role)
        # Delay is the waiting time of a client. A server's elapsed time may include other work.
        has_energy = np.isfinite(column(frame, energy))
        client_times = [name for name in known if re.fullmatch(r"elapsed_s\.client\.\d+", name)
                        and (has_energy & np.isfinite(column(frame, name))).any()]  # fmt: skip
        candidates.append(
            Subject(energy, client_times[0] if client_times else subject.delay, subject.beside)
        )
    return [subject for subject in candidates if subject.beside or subject.delay]


def _subject(energy: str, names: Sequence[str]) -> Subject:
    correlates = [
        (name, kind)
        for pattern, kind in RESOURCES
        for name in names
        if re.fullmatch(pattern, name.partition(".")[0])
    ]
    delays = [name for stem in DELAYS for name in names if name.partition(".")[0] == stem]
    return Subject(energy, delays[0] if delays else None, tuple(correlates))


def _known(frame: pl.DataFrame, name: str) -> bool:
    if not frame[name].dtype.is_numeric():
        return False
    return bool(np.isfinite(column(frame, name)).any())


def _kind(evidence: Evidence, name: str) -> str:
    return str(evidence.described.get(name, {}).get("kind", ""))


@dataclass(frozen=True)
class Stratum:
    """Comparable runs, which are all runs or the runs at one level of a factor."""

    title: str
    frame: pl.DataFrame


def _strata(evidence: Evidence) -> list[Stratum]:
    """Return one stratum per level of the varied factor that no question names.

    Runs at different levels of such a factor, for example a platform, are not comparable. If there
    is not exactly one such factor, all runs form a single stratum.
    """
    compared = {factor for question in evidence.study.questions for factor in question.factors}
    contexts = [name for name in evidence.varied if compared and name not in compared]
    if len(contexts) != 1:
        return [Stratum("", evidence.usable)]
    name = contexts[0]
    levels = levels_of(evidence.usable, name)
    return [
        Stratum(
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


def _associations(
    evidence: Evidence, energies: Sequence[Subject], strata: Sequence[Stratum]
) -> Table:
    rows: list[dict[str, Any]] = []
    without_points: dict[str, dict[str, None]] = {}
    for stratum in strata:
        for subject in energies:
            for name, kind in subject.beside:
                row = _association_row(evidence, stratum, subject.energy, name)
                if row["points"]:
                    rows.append({"where": stratum.title, "what": kind, **row})
                else:
                    without_points.setdefault(stratum.title, {}).setdefault(row["quantity"])
    columns = [
        Column("where", "runs"),
        Column("energy", "energy"),
        Column("quantity", "quantity"),
        Column("points", "points", "measured", group="between treatments"),
        Column("exponent", "exponent b", "measured", group="between treatments"),
        Column("reads", "interpretation", group="between treatments"),
        Column("spearman", "Spearman's ρ", "measured", group="between treatments"),
        Column("pearson", "Pearson's r", "measured", group="between treatments"),
        Column("inside", "r of logs", "measured", group="within treatments"),
    ]
    if all(not row["where"] for row in rows):
        columns = columns[1:]
    notes = [PHRASES("note", low=PROPORTION[0], high=PROPORTION[1])]
    for where, quantities in without_points.items():
        notes.append(
            PHRASES("without_points_of", where=where, quantities=quantities)
            if where
            else PHRASES("without_points", quantities=quantities)
        )
    return Table("proportion", PHRASES("table"), columns, rows, joined(notes))


def _association_row(
    evidence: Evidence, stratum: Stratum, energy: str, name: str
) -> dict[str, Any]:
    medians = _medians(evidence, stratum.frame, [energy, name])
    medians = medians[~np.isnan(medians).any(axis=1)]
    joules, quantity = medians[:, 0], medians[:, 1]
    power = association.exponent(quantity, joules)
    return {
        "energy": _title(evidence, energy),
        "quantity": _title(evidence, name),
        "points": int(medians.shape[0]),
        "spearman": _interval_or_text(association.spearman(quantity, joules)),
        "pearson": _interval_or_text(association.pearson(quantity, joules)),
        "exponent": power,
        "reads": proportionality(power),
        "inside": _within_treatments(evidence, stratum.frame, energy, name),
    }


def _interval_or_text(result: Any) -> Any:
    """Return the interval of an association.

    If it has no interval, return the estimate and p as text.
    """
    if not isinstance(result, association.Association):
        return result
    if isinstance(result.interval, stats.Interval):
        return result.interval
    return PHRASES("rho", rho=result.estimate, p=result.p, method=result.p_method)


def _within_treatments(evidence: Evidence, frame: pl.DataFrame, energy: str, name: str) -> Any:
    joules, quantity = column(frame, energy), column(frame, name)
    with np.errstate(invalid="ignore"):
        kept = np.isfinite(joules) & np.isfinite(quantity) & (joules > 0) & (quantity > 0)
    levels = [levels_of(frame, factor) for factor in evidence.varied]
    treatments = list(zip(*levels, strict=True))
    return _interval_or_text(
        association.within_groups(
            np.log(quantity[kept]),
            np.log(joules[kept]),
            [str(treatments[index]) for index in np.flatnonzero(kept)],
        )
    )


def _title(evidence: Evidence, name: str) -> str:
    return resolve(name, evidence.described).title


def _scatter(
    evidence: Evidence, subject: Subject, delay: str, strata: Sequence[Stratum], number: int
) -> Figure:
    energy_of, delay_of = (resolve(name, evidence.described) for name in (subject.energy, delay))
    points: list[dict[str, Any]] = []
    for stratum in strata:
        frame = stratum.frame
        joules, delays = column(frame, subject.energy), column(frame, delay)
        points += points_of(evidence, frame, delays, joules, evidence.primary, stratum.title)
    return Figure(
        f"energy-delay-{number}-runs",
        PHRASES("scatter", energy=energy_of.title, delay=delay_of.title),
        PHRASES("scatter_caption"),
        figures.scatter_chart(
            points,
            titles_of(evidence, evidence.primary),
            words.factor_title(evidence.primary),
            [stratum.title for stratum in strata],
            max(1, len(strata)) if len(strata) < 4 else panels_per_row(evidence),
            (_axis(delay_of), _axis(energy_of)),
        ),
    )


def _axis(response: Response) -> str:
    return f"{response.title} ({response.unit})" if response.unit else response.title


def _products(
    evidence: Evidence, subject: Subject, delay_name: str, strata: Sequence[Stratum], number: int
) -> Table:
    """Return the table of energy × delay by treatment, with the Pareto front marked."""
    rows: list[dict[str, Any]] = []
    for stratum in strata:
        rows += _product_rows(evidence, subject, delay_name, stratum)
    energy, delay = (resolve(name, evidence.described) for name in (subject.energy, delay_name))
    return Table(
        f"energy-delay-{number}",
        PHRASES("products", energy=energy.title, delay=delay.title),
        [
            *factor_columns(evidence),
            Column("runs", "runs", "measured"),
            Column("energy", energy.title, "measured", energy.unit),
            Column("delay", delay.title, "measured", delay.unit),
            Column("product", "energy–delay product", "measured", f"{energy.unit}·{delay.unit}"),
            Column("front", "on the Pareto front"),
        ],
        rows,
        PHRASES("products_note_of_many" if len(strata) > 1 else "products_note"),
    )


def _product_rows(
    evidence: Evidence, subject: Subject, delay: str, stratum: Stratum
) -> list[dict[str, Any]]:
    medians = _medians(evidence, stratum.frame, [subject.energy, delay])
    front = association.pareto_front(medians[:, 0], medians[:, 1])
    rows = []
    for index, (key, frame) in enumerate(by_treatment(evidence, stratum.frame).items()):
        product = column(frame, subject.energy) * column(frame, delay)
        known = product[~np.isnan(product)]
        if np.isnan(medians[index]).any():
            continue
        rows.append(
            {
                **dict(zip(evidence.varied, key, strict=True)),
                "runs": int(known.size),
                "energy": float(medians[index, 0]),
                "delay": float(medians[index, 1]),
                "product": stats.geometric_mean(known),
                "front": "yes" if front[index] else "",
                "order": float(medians[index, 0] * medians[index, 1]),
            }
        )
    return sorted(rows, key=lambda row: row["order"])


PART = PagePart(170, lambda data: [section(data.evidence)])
