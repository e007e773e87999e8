"""From values to a campaign's rows: block, verdict, net energy by a recipe, provenance."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from wattwire.imports import SetAside

from .observed import IDLE_W, RESPONSES, UNMETERED, Collected, Observation, Value

RIGHT, AUTHORS = "right", "authors"
SAMPLES_MIN = 3
"""With fewer samples a second too many or too few is a third of the energy or more."""
WINDOW_SLACK_S, WINDOW_SLACK_SHARE = 1.5, 0.02
"""How far the meter's seconds may be from the client's: a sample at either end, and the meter's
clock, which over long runs is seen to lose 2 %."""

COLUMNS: dict[str, tuple[str, str, str]] = {
    "energy_j": ("J", "{role}'s net energy", "energy of the {role}'s machine above idle power"),
    "energy_raw_j": (
        "J",
        "{role}'s whole energy",
        "energy of the {role}'s machine, idle power included, over all samples",
    ),
    "energy_samples": ("", "samples at the {role}", "samples of the power meter at the {role}"),
    "energy_sample_min_w": ("W", "{role}'s smallest sample", "smallest sample at the {role}"),
    "energy_sample_max_w": ("W", "{role}'s largest sample", "largest sample at the {role}"),
    "elapsed_s": ("s", "{role}'s elapsed time", "elapsed time of the {role}'s program"),
    "cpu_s": ("s", "{role}'s CPU time", "CPU time of the {role}'s program, user and system"),
    "memory_max_kib": ("KiB", "{role}'s largest memory", "largest resident memory of the {role}"),
    "faults_minor": ("", "{role}'s page faults", "minor page faults of the {role}'s program"),
    "switches_voluntary": (
        "",
        "{role}'s context switches",
        "voluntary context switches of the {role}'s program",
    ),
}
"""Unit, title and summary of each response, by its stem."""
METERED = {
    "metered_node": {
        "unit": "",
        "kind": "identity",
        "summary": "node that the power meter was plugged into; none where there was no meter",
    }
}
"""Not a factor: each response names the node that it is of."""
TYPES: dict[str, Any] = {
    "run": pl.String, "attempt": pl.Int64, "block": pl.Int64, "position": pl.Int64,
    "verdict": pl.String, "outcome": pl.String, "used": pl.Boolean, "control": pl.String,
    "factor.platform": pl.String, "factor.middleware": pl.String, "factor.language": pl.String,
    "metered_node": pl.String,
}  # fmt: skip
PROVENANCE: dict[str, Any] = {
    "run": pl.String, "column": pl.String, "files": pl.List(pl.String), "rows_used": pl.Int64,
    "rows_left_out": pl.Int64, "how": pl.String,
}  # fmt: skip
SHORT = f"energy that can't be told: fewer than {SAMPLES_MIN} samples"
BEYOND = "energy that can't be told: the meter read on for longer than the client ran"
WITHIN = "energy that can't be told: the meter read for less time than the client ran"
NO_WINDOW = "energy that can't be told: no client time to subtract idle power for"


@dataclass(frozen=True)
class Table:
    """The campaign's rows, where their values are from, and why some can't be used."""

    runs: pl.DataFrame
    provenance: pl.DataFrame
    reasons: dict[str, str]
    set_aside: tuple[SetAside, ...]
    columns: dict[str, dict[str, str]]


def tabulate(
    collected: Collected, recipe: str, printed_s: Mapping[tuple[str, str, str], float]
) -> Table:
    """All runs as rows. `printed_s` maps (platform, technology, language) to the printed time,
    which the authors' recipe subtracts idle power for."""
    records: list[dict[str, Any]] = []
    provenance: list[dict[str, Any]] = []
    reasons: dict[str, str] = {}
    aside: list[SetAside] = []
    blocks: dict[tuple[str, str, datetime.datetime], int] = {}
    passes: dict[tuple[str, str], list[datetime.datetime]] = {}
    for run in collected.sorted():
        block = blocks.setdefault(run.key[:3], len(blocks) + 1)
        seen = passes.setdefault(run.key[:2], [])
        if run.key[2] not in seen:
            seen.append(run.key[2])
        name = name_of(run, seen.index(run.key[2]) + 1)
        verdict, why = _verdict(run, recipe)
        values = {f"{key}.0": value for key, value in run.values.items() if _kept(key)}
        net = _energy(run, recipe, printed_s, aside)
        if net is not None:
            values[f"energy_j.{run.metered}.0"] = net
        if why:
            reasons[name] = why
        records.append(_record(run, name, block, verdict, values))
        provenance += [_origin(name, column, value) for column, value in values.items()]
    names = sorted({name for record in records for name in record} - set(TYPES))
    schema = {**TYPES, **dict.fromkeys(names, pl.Float64)}
    return Table(
        pl.DataFrame(records, schema=schema),
        pl.DataFrame(provenance, schema=PROVENANCE),
        reasons,
        tuple(aside),
        {name: _described(name) for name in names} | METERED,
    )


def name_of(run: Observation, repetition: int) -> str:
    """A run's name: platform, node with the meter, number of the pass, technology, language."""
    where = "resources" if run.metered == UNMETERED else run.metered
    return f"{run.platform}-{where}-{repetition:02d}-{run.ipc}-{run.language}"


def right_energy(run: Observation) -> tuple[float, str] | str:
    """Energy above idle power in the client's window and how, or why it can't be told.

    Samples carry no time, so they must be those of the window: as many seconds as the client ran.
    """
    raw, window_s = run.raw_energy_j, run.number("elapsed_s.client")
    count = run.number(f"energy_samples.{run.metered}")
    if raw is None or count is None:
        return ""
    if window_s is None:
        return NO_WINDOW
    if count < SAMPLES_MIN:
        return SHORT
    slack_s = WINDOW_SLACK_S + WINDOW_SLACK_SHARE * window_s
    if abs(count - window_s) > slack_s:
        return BEYOND if count > window_s else WITHIN
    idle_w = IDLE_W[run.platform]
    how = f"sum of the samples × 1 s − {idle_w:g} W × this run's client time"
    return raw - idle_w * window_s, how


def _energy(
    run: Observation,
    recipe: str,
    printed_s: Mapping[tuple[str, str, str], float],
    aside: list[SetAside],
) -> Value | None:
    raw = run.values.get(f"energy_raw_j.{run.metered}")
    if raw is None:
        return None
    if recipe == AUTHORS:
        seconds = printed_s.get((run.platform, run.ipc, run.language))
        if seconds is None or not raw.number:
            return None
        idle_w = IDLE_W[run.platform]
        how = f"sum of the samples × 1 s − {idle_w:g} W × the time printed"
        return Value(raw.number - idle_w * seconds, raw.file, raw.used, raw.left_out, how)
    if run.failed:
        return None
    found = right_energy(run)
    if isinstance(found, str):
        if found:
            aside.append(SetAside(raw.place, raw.used, found))
        return None
    return Value(found[0], raw.file, raw.used, raw.left_out, found[1])


def _verdict(run: Observation, recipe: str) -> tuple[str, str]:
    if not any(_kept(name) for name in run.values):
        return "invalid", "none of its files holds a value"
    if recipe == AUTHORS:
        return "valid", ""
    if run.failed:
        return "failed", run.failed
    if run.metered != UNMETERED and "elapsed_s.client" not in run.values:
        return "invalid", "no client time: nothing says that the client ran to its end"
    return "valid", ""


def _kept(name: str) -> bool:
    stem = name.partition(".")[0]
    return stem in RESPONSES and stem in COLUMNS


def _record(
    run: Observation, name: str, block: int, verdict: str, values: Mapping[str, Value]
) -> dict[str, Any]:
    return {
        "run": name,
        "attempt": 1,
        "block": block,
        "position": None,  # the order inside a pass is told by no file
        "verdict": verdict,
        "outcome": "died" if run.failed else "completed",
        "used": verdict == "valid",
        "control": "",
        "factor.platform": run.platform,
        "factor.middleware": run.ipc,
        "factor.language": run.language,
        "metered_node": run.metered,
        **{column: value.number for column, value in values.items()},
    }


def _origin(run: str, column: str, value: Value) -> dict[str, Any]:
    return {
        "run": run,
        "column": column,
        "files": [value.file],
        "rows_used": value.used,
        "rows_left_out": value.left_out,
        "how": value.how,
    }


def _described(name: str) -> dict[str, str]:
    stem, role, _ = name.split(".")
    unit, title, summary = COLUMNS[stem]
    told = {"title": title.format(role=role), "summary": summary.format(role=role)}
    return {"unit": unit, "kind": "measured", **told}
