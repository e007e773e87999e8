"""Collect the values of the authors' files by run, before any recipe, and the unused files."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, field

from wattwire.imports import SetAside

PLATFORMS = ("intel", "arm")
NODES = ("client", "server")
UNMETERED = "none"
LANGUAGES = ("csharp", "go", "java", "javascript", "php", "python", "ruby")
IPC_FOLDERS = {"grpc": "grpc", "rest": "rest", "rpc": "rpc", "jax_ws_rpc": "rpc"}
"""Folder of a technology to its name; Java's RPC lies in a folder of its own name."""
IPCS = ("grpc", "rpc", "rest")
IDLE_W = {"intel": 23.0, "arm": 1.5}
"""Power of an idle machine, as the paper gives it (section 3.3)."""
RESPONSES = ("energy_raw_j", "energy_samples", "energy_sample_min_w", "energy_sample_max_w",
             "elapsed_s", "cpu_s", "memory_max_kib", "faults_minor", "switches_voluntary",
             "exit_status")  # fmt: skip

Key = tuple[str, str, datetime.datetime, str, str]
"""Platform, node with the meter (or "none"), start of the pass, technology, language."""

_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
# A colon is no file name everywhere, so copies carry other signs in its place.
_SIGN = "(?::|%3A|\uf03a|[._-])"
_TIME = rf"(?P<hour>\d\d?){_SIGN}(?P<minute>\d\d){_SIGN}(?P<second>\d\d)"
_MONTH, _DAY = r"(?P<month>[A-Z][a-z]{2})", r"(?P<day>\d\d?)"
_STAMPS = tuple(
    re.compile(
        rf"experiment_data_(?:[A-Z][a-z]{{2}}_+)?{date}_+{_TIME}_+(?:[A-Z]{{1,5}}_+)?"
        r"(?P<year>\d{4})"
    )
    for date in (f"{_MONTH}_+{_DAY}", f"{_DAY}_+{_MONTH}")
)


@dataclass(frozen=True)
class Value:
    """One number, the file it is from (below the source), and how it was read from there."""

    number: float
    file: str
    used: int = 1
    left_out: int = 0
    how: str = ""
    line: int = 0
    """The line of a table that it is from; 0 where it is from a file of its own."""

    @property
    def place(self) -> str:
        """File, and line where it is one of many."""
        return f"{self.file}, line {self.line}" if self.line else self.file


@dataclass
class Observation:
    """One run of one implementation: values as STEM.ROLE, and what is known to be wrong with it.

    `folder` is the pass's folder; `clocks` maps a role to the first clock time that it printed.
    """

    key: Key
    folder: str
    values: dict[str, Value] = field(default_factory=dict)
    failed: str = ""
    clocks: dict[str, datetime.datetime] = field(default_factory=dict)

    @property
    def platform(self) -> str:
        return self.key[0]

    @property
    def metered(self) -> str:
        """The node that the power meter was plugged into; "none" where there was no meter."""
        return self.key[1]

    @property
    def ipc(self) -> str:
        return self.key[3]

    @property
    def language(self) -> str:
        return self.key[4]

    def number(self, name: str) -> float | None:
        """A value by STEM.ROLE; None where there is none."""
        value = self.values.get(name)
        return None if value is None else value.number

    @property
    def raw_energy_j(self) -> float | None:
        """Sum of the metered node's samples, idle power included; the authors' 0 is missing."""
        raw = self.number(f"energy_raw_j.{self.metered}")
        return raw or None


@dataclass
class Collected:
    """All runs by key, and the files or rows that nothing comes from."""

    runs: dict[Key, Observation] = field(default_factory=dict)
    set_aside: list[SetAside] = field(default_factory=list)

    def at(self, key: Key, folder: str) -> Observation:
        """The run of that key, made where it is new."""
        return self.runs.setdefault(key, Observation(key, folder))

    def leave(self, path: str, why: str, rows: int = 0) -> None:
        """Note that no value comes from a file, or from some of its rows."""
        self.set_aside.append(SetAside(path, rows, why))

    def sorted(self) -> list[Observation]:
        """The runs: platform, metered node, time of the pass, technology, language."""
        place = {UNMETERED: 2, "client": 0, "server": 1}
        return sorted(
            self.runs.values(),
            key=lambda run: (
                PLATFORMS.index(run.platform), place[run.metered], run.key[2],
                IPCS.index(run.ipc), LANGUAGES.index(run.language),
            ),
        )  # fmt: skip

    def grouped(self) -> dict[tuple[str, str, str, str], list[Observation]]:
        """Runs in order of time by platform, metered node, technology and language."""
        groups: dict[tuple[str, str, str, str], list[Observation]] = {}
        for run in self.sorted():
            groups.setdefault((run.platform, run.metered, run.ipc, run.language), []).append(run)
        return groups


def stamp(folder: str) -> datetime.datetime | None:
    """The start of a pass from its folder's name, in either form that the authors' date wrote."""
    for form in _STAMPS:
        match = form.match(folder)
        if match and match["month"] in _MONTHS:
            try:
                return datetime.datetime(
                    int(match["year"]), _MONTHS.index(match["month"]) + 1, int(match["day"]),
                    int(match["hour"]), int(match["minute"]), int(match["second"]),
                )  # fmt: skip
            except ValueError:
                return None
    return None
