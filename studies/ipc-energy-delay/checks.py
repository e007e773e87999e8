"""Every number of tables 4, 5, 7 and 8 beside what the data give by the authors' choices."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wattwire.imports import Check, Match

from . import printed
from .known import TIME_ROLE, Known, Series
from .naming import digits, named
from .observed import IDLE_W, NODES
from .printed import PLATFORM, Printed, Row

ENERGY_PLACES, RATIO_PLACES = 1, 1
ENERGY_SLACK = 1
"""Net energies: one unit of the last digit either way. Medians of an even number of runs have
two decimals, and the printed numbers lie up to 0.15 J below them by no single rule of cutting."""
RESOURCES = {
    "memory_max_thousand_kib": ("memory_max_kib", "MRSS"),
    "faults_minor_thousand": ("faults_minor", "MPF"),
    "switches_voluntary_thousand": ("switches_voluntary", "VCS"),
}
UNIT_OFF = "agrees to one unit of the last digit"
TOTAL, RATIO, LESS = "total (J)", "ratio", "less than one of its parts"
CLOSE, NEAR = 0.002, 0.1
"""Shares of a printed number within which another way is named as close, or as the nearest."""
RECIPE_RESOURCE = "median over the runs, divided by 1,000"
RECIPE_TIME = "whole seconds of elapsed time in the first pass ({role}'s time)"
RECIPE_TOTAL = "printed client + printed server"
RECIPE_RATIO = "printed number ÷ the smallest printed in the block"


def all_checks(known: Known, tables: Printed) -> tuple[Check, ...]:
    """The checks in the order of the tables, row by row."""
    found: list[Check] = []
    for table in PLATFORM:
        lines = dict.fromkeys(row[2:] for row in tables.rows if row[0] == table)
        for ipc, language in lines:
            of = {node: (table, node, ipc, language) for node in (*NODES, "both")}
            if table in ("4", "5"):
                for node in NODES:
                    found += _energy(known, tables, of[node])
                found += _time(known, tables, of["both"])
                found += _total(tables, of["both"])
                for row in of.values():
                    found += _ratio(tables, row)
            else:
                for node in ("server", "client"):
                    found += _resources(known, tables, of[node])
    return tuple(found)


def recipe_energy(platform: str) -> str:
    """The authors' recipe for a net energy."""
    return (
        f"median over the runs − {IDLE_W[platform]:g} W × T, T as printed; to one unit of the last "
        "digit"
    )


def net_energy(known: Known, tables: Printed, row: Row) -> tuple[Series, float] | None:
    """Sums of samples of a row's runs and the net energy by the authors' recipe; None without."""
    table, node, ipc, language = row
    platform = PLATFORM[table]
    sums = known.sums(platform, node, ipc, language)
    seconds = tables.number((table, "both", ipc, language), "time_s")
    if sums is None or seconds is None:
        return None
    return sums, sums.median - IDLE_W[platform] * seconds


@dataclass(frozen=True)
class _Cell:
    """One printed number: makes the check of it, with what all checks share."""

    row: Row
    column: str
    text: str
    recipe: str
    right: float | None = None

    def check(self, value: float | None, match: Match, told: str, **more: Any) -> Check:
        place = {**named(*self.row[2:]), "column": self.column}
        shared = {"recipe": self.recipe, "explanation": told, "default_value": self.right, **more}
        return Check(f"Table {self.row[0]}", place, self.text, value, match, **shared)

    def judged(self, value: float, places: int, told: str, slack: int = 0) -> Check:
        """The check of a value that stands on the recipe alone."""
        match = printed.match(value, self.text, places, slack)
        easy = match is Match.EXACT and printed.weak(self.text, places, slack)
        return self.check(value, match, told, weak=easy)

    def absent(self, told: str) -> Check:
        """The check where there is nothing to compare with."""
        return self.check(None, Match.NOT_COMPUTABLE, told)


def _median(values: Sequence[float]) -> float | None:
    return float(statistics.median(values)) if values else None


def _energy(known: Known, tables: Printed, row: Row) -> Iterator[Check]:
    table, node, ipc, language = row
    platform, text = PLATFORM[table], tables.text(row, "energy_j")
    if not text:
        return
    right = _median(known.right_energies(platform, node, ipc, language))
    cell = _Cell(row, f"energy {node} (J)", text, recipe_energy(platform), right)
    found = net_energy(known, tables, row)
    if found is None:
        yield cell.absent("no run of it with samples is here")
        return
    sums, net_j = found
    seconds = tables.number((table, "both", ipc, language), "time_s") or math.nan
    subtracted = f"{IDLE_W[platform]:g} W × {seconds:g} s"
    told = f"median {sums.median:.10g} J − {subtracted} ({sums.origin})"
    stated = cell.judged(net_j, ENERGY_PLACES, told, ENERGY_SLACK)
    if stated.match is Match.EXACT:
        if not printed.prints_as(net_j, text, ENERGY_PLACES):
            stated = replace(stated, explanation=f"{told}; {UNIT_OFF}")
        yield stated
        return
    variants = _variants(known, tables, row, sums)
    hits = [one for one in variants if printed.prints_as(one[1], text, ENERGY_PLACES)]
    if hits:
        how, value = hits[0]
        told += f" gives {digits(net_j, 2)}; {how} gives the printed number"
        yield cell.check(value, Match.BY_SEARCH, told, recipe=how, searched=len(variants) + 1,
                         weak=printed.weak(text, ENERGY_PLACES))  # fmt: skip
        return
    told += _near(text, sums, seconds, variants)
    yield cell.judged(net_j, ENERGY_PLACES, told, ENERGY_SLACK)


def _variants(known: Known, tables: Printed, row: Row, sums: Series) -> list[tuple[str, float]]:
    """Other ways to the printed number that are worth a try, with what each gives."""
    table, node, ipc, language = row
    platform = PLATFORM[table]
    idle_w = IDLE_W[platform]
    seconds = tables.number((table, "both", ipc, language), "time_s") or math.nan
    found = [("median without idle power subtracted", sums.median)]
    client = known.times(platform, ipc, language, "client")
    if client is not None:
        whole = math.floor(client.median)
        found.append((f"median − {idle_w:g} W × {whole} s, the median time of the client",
                      sums.median - idle_w * whole))  # fmt: skip
    first = known.first_time(platform, ipc, language, TIME_ROLE[platform])
    if first is not None and math.floor(first) != seconds:
        found.append((f"median − {idle_w:g} W × {math.floor(first)} s, the first pass's time",
                      sums.median - idle_w * math.floor(first)))  # fmt: skip
    padded = known.padded(platform, node, ipc, language)
    if padded:
        median = Series(padded, "").median
        told = f"median {median:.10g} J of the padded sheet's {len(padded)} rows"
        found.append((f"{told} − {idle_w:g} W × {seconds:g} s", median - idle_w * seconds))
    other = "client" if node == "server" else "server"
    beside = net_energy(known, tables, (table, other, ipc, language))
    if beside is not None:
        found.append((f"median − {digits(beside[1], 2)} J, the {other}'s net energy",
                      sums.median - beside[1]))  # fmt: skip
    return found


def _near(text: str, sums: Series, seconds: float, variants: list[tuple[str, float]]) -> str:
    """What else the printed number tells: another way that comes near it, or the idle power that
    it implies."""
    number = float(text)
    off, how, value = min((abs(value - number), how, value) for how, value in variants)
    if off <= CLOSE * abs(number):
        return f"; the number is close to {digits(value, 2)}: {how}"
    told = f"; the printed number takes an idle power of {(sums.median - number) / seconds:.2f} W"
    if off <= NEAR * abs(number):
        told += f"; the nearest of {len(variants)} other ways gives {digits(value, 2)}: {how}"
    return told.replace("of -", "of −")


def _time(known: Known, tables: Printed, row: Row) -> Iterator[Check]:
    table, _, ipc, language = row
    platform = PLATFORM[table]
    text = tables.text(row, "time_s")
    if not text:
        return
    role = TIME_ROLE[platform]
    right = _median(known.windows(platform, ipc, language, *NODES))
    cell = _Cell(row, "time (s)", text, RECIPE_TIME.format(role=role), right)
    first = known.first_time(platform, ipc, language, role)
    told = _medians_told(known, platform, ipc, language)
    if first is None:
        yield cell.absent(f"the first pass has no time of the {role}{told}")
        return
    run = known.first_run(platform, ipc, language)
    if run is not None and run.failed:
        told += f"; in that run {run.failed}"
    passes = known.passes(platform, "client")
    which = "the only pass" if passes == 1 else f"first of {passes} passes"
    first_of = f"{which} {first:.10g} s"
    yield cell.judged(float(math.floor(first)), 0, first_of + told)


def _medians_told(known: Known, platform: str, ipc: str, language: str) -> str:
    told = ""
    for role in ("client", "server"):
        series = known.times(platform, ipc, language, role)
        if series is not None:
            told += f"; median of the {role} {series.median:.10g} s ({series.origin})"
    return told


def _total(tables: Printed, row: Row) -> Iterator[Check]:
    text = tables.text(row, "energy_total_j")
    parts = [tables.number((row[0], node, *row[2:]), "energy_j") for node in NODES]
    if not text or parts[0] is None or parts[1] is None:
        return
    total_j = parts[0] + parts[1]
    cell = _Cell(row, TOTAL, text, RECIPE_TOTAL)
    told = f"the printed columns add up to {total_j:.1f}"
    if float(text) < max(parts[0], parts[1]):
        told += f", and the printed total is {LESS}"
    yield cell.judged(total_j, ENERGY_PLACES, told, ENERGY_SLACK)


def _ratio(tables: Printed, row: Row) -> Iterator[Check]:
    node = row[1]
    column, ratio = ("time_s", "time_ratio") if node == "both" else ("energy_j", "energy_ratio")
    text, number = tables.text(row, ratio), tables.number(row, column)
    if not text or number is None:
        return
    block = [tables.number(other, column) for other in tables.rows if other[:3] == row[:3]]
    best = min(value for value in block if value is not None)
    cell = _Cell(row, f"{RATIO} {'time' if node == 'both' else node}", text, RECIPE_RATIO)
    yield cell.judged(number / best, RATIO_PLACES, f"{number:.10g} ÷ {best:.10g}")


def _resources(known: Known, tables: Printed, row: Row) -> Iterator[Check]:
    table, role, ipc, language = row
    for column, (stem, short) in RESOURCES.items():
        text = tables.text(row, column)
        if not text:
            continue
        cell = _Cell(row, f"{short} {role}", text, RECIPE_RESOURCE)
        series = known.resources(PLATFORM[table], role, ipc, language, stem)
        if series is None:
            zero = float(text) == 0
            yield cell.absent("0 is printed where nothing was run" if zero else "no run has it")
            continue
        value = series.median / 1000.0
        told = f"median {series.median:.10g} of {series.origin}{_lost_digit(value, text)}"
        yield cell.judged(value, printed.decimals(text), told)


def _lost_digit(value: float, text: str) -> str:
    """Whether the printed number is ours with one digit gone."""
    whole = str(math.floor(value))
    left = [whole[:at] + whole[at + 1 :] for at in range(len(whole))]
    return f"; the printed number is {whole} with a digit lost" if text in left else ""
