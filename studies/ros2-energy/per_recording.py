"""Read a table with a row per recording that others made from the package.

Its rows hold what the authors' recipe takes from a file (means, sums, counts) with start and
length, so a recording that runs on past its run cannot be cut; such a row has no window.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from wattwire.imports import SetAside
from wattwire.model.errors import UsageError

from . import material

FILE = "albonico_runs.csv"
REPETITIONS = 20
NUMBERS: dict[str, pl.DataType] = {
    "interval_s": pl.Float64(),
    "clients": pl.Int64(),
    "repetition": pl.Int64(),
    "duration_s": pl.Float64(),
    "samples": pl.Int64(),
    "samples_nan": pl.Int64(),
    "samples_ge_3w": pl.Int64(),
    "mean_cpu_pct": pl.Float64(),
    "mean_mem_kb": pl.Float64(),
    "mem_samples": pl.Float64(),
    "energy_j": pl.Float64(),
    "mean_power_w": pl.Float64(),
    "mean_power_all_w": pl.Float64(),
}
WORDS = ("role", "language", "run_id", "folder", "energy_file", "authors_pick", "start",
         "mem_source")  # fmt: skip


def read(path: Path) -> material.Material:
    """The table at `path`. Raises UsageError where a column lacks or holds no number."""
    table = _table(path)
    table = table.with_columns(
        side="role",
        language=pl.col("language").replace({"py": "python"}),
        pattern=pl.col("folder").replace_strict(material.PATTERNS, default=None),
        start=pl.col("start").str.to_datetime("%Y-%m-%d %H:%M:%S", time_unit="ms", strict=False),
        number=pl.col("run_id").str.extract(r"^run_(\d+)_").cast(pl.Int64, strict=False),
        path=pl.format("{}: {}/{}/{}", pl.lit(FILE), "folder", "run_id", "energy_file"),
    )
    bad = table.filter(pl.any_horizontal(pl.col("pattern", "start", "number").is_null()))
    if bad.height:
        raise UsageError(f"{path}: {bad['folder'][0]}/{bad['run_id'][0]}: not a run of the package")
    recordings = _recordings(table)
    return material.Material(
        _planned(table),
        recordings,
        _memory(table),
        tuple(_left_out(recordings)),
        f"a row per recording in {FILE}; the package's own files were not at hand",
        samples=False,
    )


def _table(path: Path) -> pl.DataFrame:
    try:
        table = pl.read_csv(path, infer_schema=False, glob=False)
    except pl.exceptions.PolarsError as error:
        raise UsageError(
            f"{path}: not a CSV table of recordings ({str(error).splitlines()[0]}). Give the "
            "folder of the authors' package, or a table with a row per recording."
        ) from error
    lacking = [name for name in (*WORDS, *NUMBERS) if name not in table.columns]
    if lacking:
        raise UsageError(f"{path}: no column {', '.join(lacking)}; found: {table.columns}")
    if not table.height:
        raise UsageError(f"{path}: there is a header and no row below it")
    for name, kind in NUMBERS.items():
        texts = table[name]
        numbers = texts.cast(pl.Float64, strict=False)
        wrong = (numbers.is_null() & (texts.fill_null("") != "")).arg_true()
        if wrong.len():
            at = int(wrong[0])
            raise UsageError(
                f'{path}: line {at + 2}: {name}: found "{texts[at]}"; allowed: a number or nothing'
            )
        table = table.with_columns(numbers.cast(kind))
    return table


def _planned(table: pl.DataFrame) -> pl.DataFrame:
    """All repetitions of every treatment that the table names: absent rows are missing files."""
    treatment = ["folder", "pattern", "language", "interval_s", "clients", "number"]
    every = table.select(treatment).unique(maintain_order=True)
    planned = every.join(pl.DataFrame({"repetition": range(REPETITIONS)}), how="cross")
    planned = planned.with_columns(
        run_id=pl.format("run_{}_repetition_{}", "number", "repetition"), here=pl.lit(True)
    )
    return planned.select(list(material.PLANNED)).cast(material.PLANNED)


def _recordings(table: pl.DataFrame) -> pl.DataFrame:
    seconds = pl.col("duration_s") + 1.0  # the first sample stands for the second before it
    whole = pl.col("duration_s") <= material.OVER_S
    rows = pl.col("samples") - pl.col("samples_nan")
    picked = pl.col("authors_pick").replace_strict({"yes": True, "no": False}, default=None)
    frame = table.with_columns(
        rows=rows,
        not_numbers="samples_nan",
        rows_from_3w="samples_ge_3w",
        cpu_percent="mean_cpu_pct",
        sum_w="energy_j",
        power_below_3w="mean_power_w",
        power_all_w="mean_power_all_w",
        window_s=pl.when(whole).then(seconds),
        window_rows=pl.when(whole).then(rows),
        window_energy_j=pl.when(whole).then(pl.col("mean_power_all_w") * seconds),
        window_cpu_percent=pl.when(whole).then("mean_cpu_pct"),
        picked=picked,
    )
    frame = material.ranked(frame)
    return frame.select(list(material.RECORDINGS)).cast(material.RECORDINGS)


def _memory(table: pl.DataFrame) -> pl.DataFrame:
    known = table.filter(pl.col("mean_mem_kb").is_not_null())
    first = known.unique(material.NODE, keep="first", maintain_order=True)
    frame = first.with_columns(
        memory_path=pl.format(
            "{}: {}/{}, cpu-mem-{}.csv ({})",
            pl.lit(FILE), "folder", "run_id", "side", "mem_source",
        ),
        memory_kib="mean_mem_kb",
        memory_all_kib="mean_mem_kb",
        memory_rows="mem_samples",
        memory_left_out=pl.lit(0),
    )  # fmt: skip
    return frame.select(list(material.MEMORY)).cast(material.MEMORY)


def _left_out(recordings: pl.DataFrame) -> list[SetAside]:
    found = []
    columns = ("path", "rows", "not_numbers", "window_s")
    for path, rows, broken, window_s in recordings.select(columns).iter_rows():
        if broken:
            found.append(SetAside(path, broken, "no number: a header line inside the file"))
        if window_s is None:
            why = "runs on past its run, and a mean over all of it cannot be cut"
            found.append(SetAside(path, rows, why))
        elif window_s < material.FULL_SHARE * material.RUN_S:
            found.append(SetAside(path, rows, "recording shorter than the run"))
    return found
