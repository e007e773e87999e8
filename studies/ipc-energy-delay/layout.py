"""Read the authors' folders: <platform>/<node>/experiment_data_<date>/<kind>/…/*.txt."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator
from pathlib import Path

from wattwire.imports.progress import tell

from . import files
from .observed import (
    IPC_FOLDERS,
    LANGUAGES,
    PLATFORMS,
    UNMETERED,
    Collected,
    Observation,
    Value,
    stamp,
)

PASSES = {
    "client": "client",
    "client_with_performance_client": "client",
    "server": "server",
    "server_with_performance_client": "server",
    "resource_usage": UNMETERED,
}
"""Folder of passes to the node that the meter was plugged into."""
SHEETS = ("statistics_client", "statistics_server", "measurements")
ENERGY = "energy_server"
"""The folder of the meter's samples: of whatever node was metered, the client's too."""
TIMES = {"performance_server": "server", "performance_client": "client"}
RESOURCES = {"resource_usage_local": "server", "resource_usage_remote": "client"}
DERIVED = "summary that the authors' scripts wrote; every value is taken from what it sums up"
SWAPPED = f"{DERIVED} (its energy lines name technology and language the wrong way round)"


def platforms(source: Path) -> dict[str, Path]:
    """Folders of the platforms in `source` or up to two levels below; empty where there is none."""
    level = [source]
    for _ in range(3):
        found: dict[str, Path] = {}
        for folder in level:
            candidates = [folder] if folder.name in PLATFORMS else _folders(folder)
            for one in candidates:
                known = {child.name for child in _folders(one)} & {*PASSES, *SHEETS}
                if one.name in PLATFORMS and known:
                    found.setdefault(one.name, one)
        if found:
            return found
        level = [child for folder in level for child in _folders(folder)]
    return {}


def read(source: Path, collected: Collected) -> None:
    """Read every pass of every platform below `source` into `collected`."""
    for platform, folder in platforms(source).items():
        for child in _folders(folder):
            if child.name in PASSES:
                _passes(source, platform, child, collected)
            elif child.name not in SHEETS:
                collected.leave(_name(source, child), "folder that no table is from")


def _passes(source: Path, platform: str, folder: Path, collected: Collected) -> None:
    for one in _folders(folder):
        began = stamp(one.name)
        if began is None:
            collected.leave(_name(source, one), "folder whose name holds no date that can be read")
            continue
        tell(f"reading {platform}/{folder.name}/{one.name}")
        at = _Pass(source, platform, PASSES[folder.name], began, one.name, collected)
        for kind in _folders(one):
            at.read(kind)


class _Pass:
    """One pass over all implementations, of one platform with the meter at one node."""

    def __init__(
        self,
        source: Path,
        platform: str,
        metered: str,
        began: datetime.datetime,
        folder: str,
        collected: Collected,
    ) -> None:
        self.source, self.platform, self.metered = source, platform, metered
        self.began, self.folder, self.collected = began, folder, collected

    def read(self, kind: Path) -> None:
        """Read one kind of files: samples, times or resources; others are set aside."""
        if kind.name == "graph_data":
            for file in _files(kind):
                swapped = file.name.startswith("energy")
                self._leave(file, SWAPPED if swapped else DERIVED)
            return
        if kind.name not in (ENERGY, *TIMES, *RESOURCES):
            self._leave(kind, "folder that no table is from")
            return
        for language in _folders(kind):
            for ipc in _folders(language):
                self._implementation(kind.name, language.name, ipc)

    def _implementation(self, kind: str, language: str, folder: Path) -> None:
        """Read the one file of an implementation; what else lies beside it is set aside."""
        held = _files(folder)
        if language not in LANGUAGES or folder.name not in IPC_FOLDERS:
            for file in held:
                self._leave(file, "neither a language nor a technology of the study")
            return
        named = [file for file in held if file.name == f"{language}.txt"]
        # JavaScript's resources of the client lie in go.txt: one lone file under a wrong name.
        texts = [file for file in held if file.suffix == ".txt"]
        chosen = named or (texts if len(texts) == 1 else [])
        for file in held:
            if file not in chosen:
                self._leave(file, "not the file that holds this run")
        for file in chosen:
            key = (self.platform, self.metered, self.began, IPC_FOLDERS[folder.name], language)
            self._file(kind, file, self.collected.at(key, self.folder))

    def _file(self, kind: str, path: Path, run: Observation) -> None:
        if not path.is_file():  # a pipe would never end, a link may lead nowhere
            self._leave(path, "not a plain file")
            return
        try:
            if kind == ENERGY:
                self._energy(path, run)
            elif kind in TIMES:
                self._times(path, run, TIMES[kind])
            else:
                self._resources(path, run, RESOURCES[kind])
        except OSError as error:
            self._leave(path, f"cannot be read ({error.strerror or 'damaged'})")

    def _energy(self, path: Path, run: Observation) -> None:
        found = files.samples(path)
        if isinstance(found, str):
            self._leave(path, found)
            return
        if self.metered == UNMETERED:
            self._leave(path, "samples of a meter in passes without one")
            return
        if found.bad:
            self._leave(path, "energy file with lines that are no number: its sum is not known")
            return
        watts, role = found.watts, self.metered
        values = {
            "energy_raw_j": (sum(watts), "sum of the samples × 1 s, idle power included"),
            "energy_samples": (float(len(watts)), "number of samples"),
            "energy_sample_min_w": (min(watts), "smallest sample"),
            "energy_sample_max_w": (max(watts), "largest sample"),
        }
        where = _name(self.source, path)
        for name, (number, how) in values.items():
            value = Value(round(number, 6), where, len(watts), 0, how)
            self._put(run, f"{name}.{role}", value, path)

    def _times(self, path: Path, run: Observation, role: str) -> None:
        head, tail = files.ends(path)
        found = files.times(tail)
        told = files.clock(head)
        if told is not None:
            run.clocks.setdefault(role, told)
        if role == "client" and (failure := files.error(head, tail)):
            run.failed = run.failed or f"the client's output tells of an error: {failure}"
        if found is None:
            self._leave(path, "no lines of time at the file's end" if head else "empty file")
            return
        how = "last lines of the file: real", "last lines of the file: user + sys"
        where = _name(self.source, path)
        for name, number, told_how in zip(("elapsed_s", "cpu_s"), found, how, strict=True):
            value = Value(round(number, 6), where, 1, 0, told_how)
            self._put(run, f"{name}.{role}", value, path)

    def _resources(self, path: Path, run: Observation, role: str) -> None:
        head, tail = files.ends(path)
        found = files.resources(tail)
        told = files.clock(head)
        if told is not None:
            run.clocks.setdefault(role, told)
        if not set(found) - {"exit_status"}:
            self._leave(path, "no lines of /usr/bin/time -v at the file's end" if head else
                        "empty file")  # fmt: skip
            return
        where = _name(self.source, path)
        for name, number in found.items():
            how = "lines of /usr/bin/time -v at the file's end"
            self._put(run, f"{name}.{role}", Value(number, where, 1, 0, how), path)

    def _put(self, run: Observation, name: str, value: Value, path: Path) -> None:
        known = run.values.setdefault(name, value)
        if known.file != value.file:
            self._leave(path, "second file with a value that another file gave already")

    def _leave(self, path: Path, why: str) -> None:
        self.collected.leave(_name(self.source, path), why)


def _name(source: Path, path: Path) -> str:
    name = path.relative_to(source).as_posix() if path.is_relative_to(source) else path.name
    return name.encode("utf-8", "replace").decode("utf-8")  # names may hold bytes that are no text


def _folders(folder: Path) -> list[Path]:
    return [Path(entry.path) for entry in _entries(folder) if _is_dir(entry)]


def _files(folder: Path) -> list[Path]:
    return [Path(entry.path) for entry in _entries(folder) if not _is_dir(entry)]


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return iter(sorted(found, key=lambda entry: entry.name))
    except OSError:
        return iter(())
