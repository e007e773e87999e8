"""Read the replication package's layout: run folders with files of PowerJoular and of a sampler.

A run's folder holds what several tools left in several sessions. Here each file gets one of
three fates: a recording of a node's process, a node's memory, or set aside with the reason.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from wattwire.imports import SetAside
from wattwire.imports.progress import tell
from wattwire.model.errors import UsageError

from . import material, samples

EXPERIMENTS = Path("exp_runners/experiments")
RUN_FOLDER = re.compile(r"run_(\d+)_repetition_(\d+)")
ENERGY = re.compile(r"energy-(server|client)-\d+\.csv")
MEMORY = re.compile(r"cpu-mem-(server|client)\.csv")
LOGS = Path("data-analysis/stats.log")
OTHERS = (
    (r"energy-(server|client)(-powerjoular\.csv)?", "power of the whole machine, not of a node"),
    (r"energy-(server|client)-powerjoular\.csv-\d+\.csv", "copy of a node's recording"),
    (r"energy-(server|client)\.csv", "energy of the whole processor, in one sum over a run"),
    (r"(server|client)-cpu-mem\.csv", "memory is one line of the launcher's map, not the node's"),
    (r"(server|client)-cpu\.csv", "CPU by ps: a mean since the process began, not of the run"),
    (r".*\.log", "what a node printed"),
    (r"metadata\d*\.json", "the experiment runner's checksum"),
    (r"\.DS_Store", "a file manager's leftovers"),
)
"""Names of files that no value comes from, with why; the first that fits."""


@dataclass(frozen=True)
class Tree:
    """A folder of experiments below the source, `prefix` its path there."""

    folder: Path
    prefix: str

    def name(self, *parts: str) -> str:
        """A path below the source."""
        return "/".join(part for part in (self.prefix, *parts) if part)


def trees(source: Path) -> list[Tree]:
    """The folders of experiments at `source`: the package's first, then older versions of it."""
    places = ["", "experiments", str(EXPERIMENTS)]
    found = [Tree(source / p, p) for p in places if _experiments(source / p)]
    older = sorted(p for p in source.glob("at_*") if _experiments(p / EXPERIMENTS))
    return found[:1] + [Tree(p / EXPERIMENTS, f"{p.name}/{EXPERIMENTS}") for p in older]


def _experiments(folder: Path) -> list[str]:
    return [name for name in material.PATTERNS if (folder / name).is_dir()]


def read(source: Path) -> material.Material:
    """Everything in the package's layout below `source`. Raises UsageError where there is none."""
    found = trees(source)
    if not found:
        raise UsageError(
            f"{source}: none of {', '.join(material.PATTERNS)} is here or in {EXPERIMENTS}; give "
            "the folder of the replication package"
        )
    set_aside: list[SetAside] = []
    planned, files = _listed(found[0], set_aside)
    tell(f"reading {len(files)} files of {len(planned)} runs")
    recordings, odd = samples.energy(source, [f for f in files if f.kind == "energy"])
    set_aside += odd
    memory, odd = samples.memory(source, [f for f in files if f.kind == "memory"])
    set_aside += odd
    memory, odd = _older_memory(source, found[1:], memory)
    set_aside += odd
    recordings = _picked(source, recordings)
    return material.Material(
        planned,
        recordings,
        memory,
        tuple(set_aside),
        f"files of the package's layout in {source.resolve().name}",
    )


def _listed(tree: Tree, set_aside: list[SetAside]) -> tuple[pl.DataFrame, list[samples.File]]:
    """The planned runs of a tree, and the files of theirs that values may come from."""
    planned, files = [], []
    for experiment in _experiments(tree.folder):
        table = _run_table(tree.folder / experiment / "run_table.csv")
        known = set(table["run_id"])
        here = set()
        for entry in sorted(os.scandir(tree.folder / experiment), key=lambda e: e.name):
            name = tree.name(experiment, entry.name)
            if not entry.is_dir():
                if entry.name != "run_table.csv":
                    set_aside.append(SetAside(name, 0, _fate(entry.name)))
            elif entry.name in known:
                here.add(entry.name)
                files += _files(Path(entry.path), experiment, name, set_aside)
            else:
                set_aside.append(SetAside(name, 0, "folder of no run in run_table.csv"))
        planned.append(
            table.with_columns(
                folder=pl.lit(experiment),
                pattern=pl.lit(material.PATTERNS[experiment]),
                here=pl.col("run_id").is_in(list(here)),
            )
        )
    frame = pl.concat(planned).select(list(material.PLANNED)).cast(material.PLANNED)
    return frame, files


def _run_table(path: Path) -> pl.DataFrame:
    """An experiment's runs: run_id, language, interval_s, clients, repetition, number."""
    if not path.is_file():
        raise UsageError(f"{path}: this file says which run is which treatment, and it is missing")
    try:
        table = pl.read_csv(path, infer_schema=False, glob=False)
    except pl.exceptions.PolarsError as error:
        raise UsageError(f"{path}: not a table ({str(error).splitlines()[0]})") from error
    wanted = {"__run_id", "msg_interval", "language", "num_clients"}
    lacking = sorted(wanted - set(table.columns))
    if lacking:
        raise UsageError(f"{path}: no column {', '.join(lacking)}; found: {table.columns}")
    parts = pl.col("__run_id").str.extract_groups(r"^run_(\d+)_repetition_(\d+)$")
    table = table.select(
        run_id="__run_id",
        language=pl.col("language").replace({"py": "python"}),
        interval_s=pl.col("msg_interval").cast(pl.Float64, strict=False),
        clients=pl.col("num_clients").cast(pl.Int64, strict=False),
        number=parts.struct.field("1").cast(pl.Int64, strict=False),
        repetition=parts.struct.field("2").cast(pl.Int64, strict=False),
    )
    # __done is not looked at: in three of the four tables it denies runs that were done.
    odd = table.filter(pl.any_horizontal(pl.all().is_null()))
    if odd.height:
        raise UsageError(f"{path}: run {odd['run_id'][0]}: name, interval or clients unreadable")
    return table


def _files(
    folder: Path, experiment: str, name: str, set_aside: list[SetAside]
) -> Iterator[samples.File]:
    for file in sorted(os.listdir(folder)):
        for kind, pattern in (("energy", ENERGY), ("memory", MEMORY)):
            match = pattern.fullmatch(file)
            if match:
                yield samples.File(kind, experiment, folder.name, match[1], f"{name}/{file}")
                break
        else:
            set_aside.append(SetAside(f"{name}/{file}", 0, _fate(file)))


def _fate(name: str) -> str:
    for pattern, why in OTHERS:
        if re.fullmatch(pattern, name):
            return why
    return "not known to this reader"


def _older_memory(
    source: Path, older: Sequence[Tree], memory: pl.DataFrame
) -> tuple[pl.DataFrame, list[SetAside]]:
    """Memory of nodes that a later session overwrote, from older versions of the package."""
    set_aside: list[SetAside] = []
    for tree in older:
        known = set(memory.select(material.NODE).iter_rows())
        planned_files = []
        for experiment in _experiments(tree.folder):
            for folder in sorted((tree.folder / experiment).glob("run_*_repetition_*")):
                name = tree.name(experiment, folder.name)
                for file in _files(folder, experiment, name, set_aside):
                    taken = (file.folder, file.run_id, file.side) in known
                    if file.kind == "memory" and not taken:
                        planned_files.append(file)
                    else:
                        why = "an older version of a file that is used"
                        set_aside.append(SetAside(file.path, 0, why))
        more, odd = samples.memory(source, planned_files)
        memory = pl.concat([memory, more])
        set_aside += odd
    return memory, set_aside


def _picked(source: Path, recordings: pl.DataFrame) -> pl.DataFrame:
    """Mark the files that the authors' script took, as far as its log tells.

    The script takes the first file that glob gives, in the disk's order; its log prints the power
    of every run of the publisher, which only one of a run's files has.
    """
    inside = source.resolve().parents  # where `source` is the package's inner folder
    place = next((p for p in (source, *inside[:2]) if (p / LOGS).is_file()), None)
    if place is None:
        return recordings
    text = (place / LOGS).read_text(encoding="utf-8", errors="replace")
    printed = pl.Series([float(number) for number in re.findall(r"\b\d\.\d{6,}\b", text)]).round(8)
    topic = pl.col("folder").is_in([f for f, p in material.PATTERNS.items() if p == "topic"])
    of_publisher = topic & (pl.col("side") == "server")
    known = pl.col("power_below_3w").round(8).is_in(printed.unique().implode())
    one = known.sum().over(material.NODE) == 1
    return recordings.with_columns(picked=pl.when(of_publisher & one).then(known))
