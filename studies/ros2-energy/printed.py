"""Compare the means of the paper's tables with those of the recordings."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from wattwire.imports import Check, Match
from wattwire.imports.agreement import agrees, close, cut, number

from . import values
from .material import NODE, ROLES, RUN, Material

INTERVALS = {0.2: 0.25}
"""What the paper calls 0.2 s is 0.25 s in every file."""
CHOICES_MAX = 4096
"""More ways to choose among a treatment's files would find a fit for any number."""
LANGUAGE_TITLES = {"cpp": "C++", "python": "Python"}
LANGUAGE_NAMES = {title: name for name, title in LANGUAGE_TITLES.items()}
SIDE = {role: (pattern, side) for (pattern, side), role in ROLES.items()}


@dataclass(frozen=True)
class Quantity:
    """A column of the tables: its name in published.csv, ours, digits printed, words."""

    key: str
    column: str
    decimals: int
    title: str
    weak: bool


QUANTITIES = (
    Quantity("cpu_percent", "cpu_percent", 2, "CPU (%)", True),
    Quantity("memory_kib", "memory_zero_kib", 0, "memory (KB)", False),
    Quantity("energy_j", "energy_j", 2, "energy (J)", False),
    Quantity("power_w", "power_w", 2, "power (W)", True),
)
"""CPU and power are printed with two decimals and lie near 1: a match of those is weak."""
HOW = {
    values.EARLIEST: "earliest file of each run, all rows; ",
    values.AUTHORS: "the files that the authors' log shows, all rows; ",
}
TAKEN = {
    "cpu_percent": "mean CPU use × 8 threads",
    "memory_kib": "mean resident memory, a run without any counts 0",
    "energy_j": "sum of power, no time step",
    "power_w": "mean of samples below 3 W",
}


class Means:
    """Treatment means of a material under each recipe, looked up by role and treatment."""

    def __init__(self, material: Material) -> None:
        self.material = material
        self.nodes = {
            recipe: values.nodes(material, recipe)
            for recipe in (values.EARLIEST, values.AUTHORS, values.RIGHT)
        }
        self._rows: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {}
        for recipe, found in self.nodes.items():
            table = self._rows.setdefault(recipe, {})
            for role in ROLES.values():
                for row in values.means(found, role).iter_rows(named=True):
                    key = (role, row["language"], row["interval_s"], row["clients"])
                    table[key] = row
        joined = material.recordings.join(material.planned, on=RUN).sort("folder", "run_id", "rank")
        by = ["pattern", "side", "language", "interval_s", "clients"]
        several = pl.col("rank").max().over(NODE) > 1
        first = pl.col("power_all_w").filter(pl.col("rank") == 1)
        doubled = pl.struct(NODE).filter("several").n_unique()
        told = joined.with_columns(several=several).group_by(by).agg(doubled, first.mean())
        self._files = {tuple(row[: len(by)]): row[len(by) :] for row in told.iter_rows()}
        self._recordings = joined.partition_by(by, as_dict=True, maintain_order=True)
        self._no_recording = joined.clear()
        self.picks_known = bool(material.recordings["picked"].drop_nulls().len())

    def row(self, recipe: str, key: tuple[Any, ...]) -> dict[str, Any] | None:
        """The means of a treatment (role, language, interval_s, clients); None where absent."""
        return self._rows[recipe].get(key)

    def recordings(self, key: tuple[Any, ...]) -> pl.DataFrame:
        """All recordings of a treatment's node (role, language, interval_s, clients)."""
        role, *levels = key
        return self._recordings.get((*SIDE[role], *levels), self._no_recording)

    def files(self, key: tuple[Any, ...]) -> tuple[int, float | None]:
        """How many runs of a treatment's node hold several recordings, and the mean power (W) of
        the earliest ones with all their samples."""
        role, *levels = key
        return self._files.get((*SIDE[role], *levels), (0, None))


def published(folder: Path) -> list[dict[str, str]]:
    """The rows of the study's published.csv."""
    with (folder / "published.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def checks(folder: Path, means: Means) -> Iterator[Check]:
    """A check for every number of the tables in the study's published.csv."""
    for row in published(folder):
        interval = float(row["interval_s"])
        key = (
            row["node_role"], row["language"], INTERVALS.get(interval, interval),
            int(row["clients"]),
        )  # fmt: skip
        searched = _searched(means, key, row["energy_j"])
        for quantity in QUANTITIES:
            yield _check(means, key, row, quantity, searched)


def _check(
    means: Means, key: tuple[Any, ...], row: Mapping[str, str], quantity: Quantity,
    searched: tuple[int, Mapping[str, float]] | None,
) -> Check:  # fmt: skip
    printed = row[quantity.key]
    right = means.row(values.RIGHT, key)
    here = (
        right["memory_kib" if quantity.key == "memory_kib" else quantity.column] if right else None
    )
    check = Check(
        f"Table {row['table']}", _place(row, quantity), printed, None, Match.NOT_COMPUTABLE,
        "", default_value=here,
    )  # fmt: skip
    found = means.row(values.EARLIEST, key)
    why = _absent(found, quantity)
    if why or found is None:
        return replace(check, explanation=why)
    tried = [(values.EARLIEST, found[quantity.column])]
    if means.picks_known and quantity.key != "memory_kib":
        theirs = means.row(values.AUTHORS, key)
        tried.append((values.AUTHORS, theirs[quantity.column] if theirs else None))
    for recipe, value in tried:
        if agrees(printed, value, quantity.decimals):
            how = (HOW[recipe] if quantity.key != "memory_kib" else "") + TAKEN[quantity.key]
            return replace(
                check, value=value, match=Match.EXACT, recipe=how, weak=quantity.weak,
                explanation=_matched(found, printed, value, quantity),
            )  # fmt: skip
    if searched and agrees(printed, searched[1].get(quantity.key), quantity.decimals):
        return replace(
            check, value=searched[1][quantity.key], match=Match.BY_SEARCH,
            recipe=f"another choice among the runs' doubled files; {TAKEN[quantity.key]}",
            searched=searched[0], weak=quantity.weak,
            explanation=f"the earliest files give {found[quantity.column]:.4g}",
        )  # fmt: skip
    recipe, value = min(tried, key=lambda one: abs((one[1] or math.inf) - number(printed)))
    near = close(printed, value)
    return replace(
        check, value=value, recipe=HOW[recipe] + TAKEN[quantity.key],
        match=Match.WITHIN_1_PERCENT if near else Match.DIFFERS,
        explanation=_missed(means, key, row, quantity, found),
    )  # fmt: skip


def _place(row: Mapping[str, str], quantity: Quantity) -> dict[str, str]:
    """Where a number stands; the key `column` names the table's column."""
    return {
        "table": row["table"],
        "node": row["node_role"].replace("_", " "),
        "language": LANGUAGE_TITLES[row["language"]],
        "clients": row["clients"],
        "interval (s)": row["interval_s"],
        "column": quantity.title,
    }


def _absent(found: Mapping[str, Any] | None, quantity: Quantity) -> str:
    """Why a printed mean cannot be compared; empty where it can."""
    if found is None:
        return "no run of this treatment is in these data"
    if found["here"] < found["planned"]:
        return f"only {found['here']} of {found['planned']} runs of this treatment are here"
    if quantity.key != "memory_kib":
        return "" if found["runs"] else "no recording of this node"
    if not found["memory_runs"]:
        return "no file holds this node's memory: overwritten, or one line of the launcher's map"
    if found["memory_runs"] < values.MEMORY_LEAST * found["planned"]:
        return f"memory of only {found['memory_runs']} of {found['planned']} runs is left"
    return ""


def _matched(found: Mapping[str, Any], printed: str, value: float, quantity: Quantity) -> str:
    told = []
    if cut(printed, value, quantity.decimals):
        told.append("cut, not rounded")
    if quantity.key == "memory_kib" and found["memory_runs"] < found["planned"]:
        told.append(
            f"{found['planned'] - found['memory_runs']} of {found['planned']} runs have no "
            f"memory and count as 0; those that have hold {found['memory_kib']:,.0f}"
        )
    elif quantity.key != "memory_kib" and found["runs"] < found["planned"]:
        told.append(f"{found['runs']} of {found['planned']} runs have a recording")
    return "; ".join(told)


def _missed(
    means: Means, key: tuple[Any, ...], row: Mapping[str, str], quantity: Quantity,
    found: Mapping[str, Any],
) -> str:  # fmt: skip
    """What the data show about a number that does not come out."""
    told = []
    doubled, first = means.files(key)
    if doubled:
        told.append(f"{doubled} of {found['planned']} runs hold several recordings")
    if quantity.key == "energy_j":
        watts = number(row["energy_j"]) / 180.0
        right = means.row(values.EARLIEST, key)
        if agrees(row["power_w"], watts, 2) and doubled and right is not None:
            told.append(f"the printed energy is the printed power × 180 s ({watts:.3f} W)")
    if quantity.key == "power_w" and first is not None and agrees(row["power_w"], first, 2):
        told.append("with samples of 3 W and more it would be the printed digits")
    if not means.picks_known and key[0] == "publisher" and doubled:
        told.append("which file the authors' script took is not recorded here")
    return "; ".join(told) or "no choice of files among those tried gives it"


def _searched(
    means: Means, key: tuple[Any, ...], printed: str
) -> tuple[int, Mapping[str, float]] | None:
    """A choice of one file a run whose mean energy is the printed one, and how many were tried.

    Energy decides, being the only number with digits enough; the other quantities follow from
    the same choice. Only where the choices are few, and the earliest files don't give it.
    """
    plain = means.row(values.EARLIEST, key)
    if plain is None or not plain["runs"] or plain["here"] < plain["planned"]:
        return None
    if agrees(printed, plain["energy_j"], 2):
        return None
    per_run: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for one in means.recordings(key).sort("rank").iter_rows(named=True):
        per_run.setdefault((one["folder"], one["run_id"]), []).append(one)
    ways = math.prod(len(files) for files in per_run.values())
    if not 1 < ways <= CHOICES_MAX:
        return None
    for choice in itertools.product(*per_run.values()):
        energy = math.fsum(one["sum_w"] for one in choice) / len(choice)
        if agrees(printed, energy, 2):
            return ways, {
                "energy_j": energy,
                "power_w": _mean([one["power_below_3w"] for one in choice]),
                "cpu_percent": _mean([one["cpu_percent"] for one in choice]),
            }
    return None


def _mean(given: list[float | None]) -> float:
    known = [value for value in given if value is not None]
    return math.fsum(known) / len(known) if known else math.nan
