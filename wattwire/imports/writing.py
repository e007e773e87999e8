"""Write an imported campaign from the result of a reader."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import polars as pl

from wattwire.imports.imported import PROVENANCE, Imported
from wattwire.model.errors import WattwireError
from wattwire.store.imported import ImportedCampaign, write_imported

REQUIRED: dict[str, pl.DataType | type[pl.DataType]] = {
    "run": pl.String,
    "attempt": pl.Int64,
    "block": pl.Int64,
    "position": pl.Int64,
    "verdict": pl.String,
    "outcome": pl.String,
    "used": pl.Boolean,
    "control": pl.String,
}
VERDICTS = frozenset({"valid", "invalid", "failed"})


class ReaderError(WattwireError):
    """Error for an invalid campaign that a study's reader returned."""


def write(
    imported: Imported,
    path: Path,
    about: Mapping[str, Any],
    known_columns: Mapping[str, Mapping[str, str]],
) -> ImportedCampaign:
    """Write an imported campaign to a new folder and open it.

    `about` is written to import.json (study, recipe, source, version). `known_columns` describes
    the columns of the store; the reader's columns are added. Raise ReaderError if the tables of the
    reader are inconsistent, UsageError if `path` exists.
    """
    runs = _runs(imported)
    _check_provenance(imported, runs)
    described = {
        **known_columns,
        **{name: dict(description) for name, description in imported.columns.items()},
    }
    documents = {
        "import": {**about, **counts(imported), "reasons": dict(imported.reasons)},
        "study": _plain(imported.study),
        "plan": _plan(runs),
        "machine": {"hosts": {}, **_plain(imported.machine)},
        "columns": {name: described[name] for name in runs.columns if name in described},
        "checks": [_plain(check) for check in imported.checks],
        "remarks": [_plain(remark) for remark in imported.remarks],
    }
    rows = [(item.path, item.rows, item.why) for item in imported.set_aside]
    return write_imported(path, documents, runs, imported.provenance, rows)


def counts(imported: Imported) -> dict[str, Any]:
    """Return the numbers of runs, valid runs, values, files, checks by match and exclusions.

    `set_aside` has the number of excluded files and rows for each reason.
    """
    lists = imported.provenance.select(pl.col("files").unique())
    files = lists.explode("files").drop_nulls()["files"].n_unique()
    set_aside: Counter[str] = Counter()
    for item in imported.set_aside:
        set_aside[item.why] += max(1, item.rows)
    usable = imported.runs.filter(pl.col("verdict") == "valid").height
    return {
        "runs": imported.runs.height,
        "usable": usable,
        "values": imported.provenance.filter(pl.col("rows_used") > 0).height,
        "files": files,
        "checks": dict(Counter(check.match.value for check in imported.checks)),
        "weak": sum(check.weak for check in imported.checks),
        "set_aside": dict(set_aside),
    }


def _runs(imported: Imported) -> pl.DataFrame:
    """Return the reader's runs with the types of the store.

    Raise ReaderError if there are no runs, a column is missing, a run occurs twice, or a verdict is
    unknown.
    """
    runs = imported.runs
    missing = [name for name in REQUIRED if name not in runs.columns]
    if missing:
        noun = "column" if len(missing) == 1 else "columns"
        raise ReaderError(f"the study's reader: its runs lack the {noun} {', '.join(missing)}")
    if runs.height == 0:
        raise ReaderError("the study's reader returned no run")
    runs = runs.with_columns(
        [pl.col(name).cast(kind, strict=True) for name, kind in REQUIRED.items()]
    )
    repeated = runs.filter(runs.select("run", "attempt").is_duplicated())["run"].to_list()
    if repeated:
        raise ReaderError(f"the study's reader: run {repeated[0]} occurs more than once")
    unknown = set(runs["verdict"].to_list()) - VERDICTS
    if unknown:
        allowed = ", ".join(sorted(VERDICTS))
        raise ReaderError(f"the study's reader: verdict: found {unknown}; allowed: {allowed}")
    return runs


def _check_provenance(imported: Imported, runs: pl.DataFrame) -> None:
    table = imported.provenance
    missing = [name for name in PROVENANCE if name not in table.columns]
    if missing:
        raise ReaderError(f"the study's reader: its provenance lacks {', '.join(missing)}")
    foreign = table.select("run").join(runs.select("run"), on="run", how="anti")
    if foreign.height:
        raise ReaderError(
            f"the study's reader: its provenance names run {foreign['run'].sort()[0]}, which is "
            "not one of its runs"
        )
    for name in responses(runs):
        with_value = runs.filter(pl.col(name).is_not_null()).select("run")
        explained = table.filter(pl.col("column") == name).select("run")
        unexplained = with_value.join(explained, on="run", how="anti", maintain_order="left")
        if unexplained.height:
            run = unexplained["run"][0]
            raise ReaderError(f"the study's reader: {name} of run {run} has no provenance")


def responses(runs: pl.DataFrame) -> list[str]:
    """Return the columns of a table of runs that are responses: numeric columns except keys."""
    return [
        name
        for name, kind in runs.schema.items()
        if name not in REQUIRED and not name.startswith("factor.") and kind.is_numeric()
    ]


def _plan(runs: pl.DataFrame) -> Iterator[dict[str, Any]]:
    factors = [name for name in runs.columns if name.startswith("factor.")]
    keys = ("run", "block", "position", "control")
    first = runs.unique("run", keep="first", maintain_order=True).select(*keys, *factors)
    for row in first.iter_rows(named=True):
        levels = {name.removeprefix("factor."): row[name] for name in factors}
        levels = {name: level for name, level in levels.items() if level is not None}
        run = {name: row[name] for name in keys}
        yield {**run, "treatment": levels, "levels": levels, "skipped": None}


def _plain(value: Any) -> Any:
    """Return the value as JSON types, with tuples as lists, and NaN and infinity as None."""
    if value is None or type(value) in (str, int, bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        return _plain(value.item())
    return value
