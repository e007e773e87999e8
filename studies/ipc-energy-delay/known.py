"""Select the values to compare printed numbers with: by run, from the passes or the sheets."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from .observed import UNMETERED, Collected, Observation
from .runs import right_energy
from .sheets import Sheets

TIME_ROLE = {"intel": "server", "arm": "client"}
"""Whose time the tables print, as the numbers show."""


@dataclass(frozen=True)
class Series:
    """One number per run, and where they are from in a few words."""

    values: Sequence[float]
    origin: str

    @property
    def median(self) -> float:
        return float(statistics.median(self.values))


class Known:
    """Runs and sheets, asked by platform, node, technology and language."""

    def __init__(self, collected: Collected, sheets: Sheets) -> None:
        self.collected, self.sheets = collected, sheets
        self.groups = collected.grouped()
        self._first = {
            platform: min((run.key[2] for run in collected.runs.values()
                           if run.key[:2] == (platform, "client")), default=None)
            for platform in TIME_ROLE
        }  # fmt: skip

    def runs(self, platform: str, metered: str, ipc: str, language: str) -> list[Observation]:
        """Runs in order of time."""
        return self.groups.get((platform, metered, ipc, language), [])

    def sums(self, platform: str, node: str, ipc: str, language: str) -> Series | None:
        """Sums of samples, idle power included, of every run that has one; None without any."""
        runs = self.runs(platform, node, ipc, language)
        values = [run.raw_energy_j for run in runs if run.raw_energy_j]
        return self._fuller(values, (platform, "sums", node, ipc), language, len(runs))

    def right_energies(self, platform: str, node: str, ipc: str, language: str) -> list[float]:
        """Energies above idle power of the runs that tell them, each with its own window."""
        runs = self.runs(platform, node, ipc, language)
        found = [right_energy(run) for run in runs if not run.failed]
        return [one[0] for one in found if not isinstance(one, str)]

    def windows(self, platform: str, ipc: str, language: str, *nodes: str) -> list[float]:
        """Elapsed seconds of the client in runs that did not fail, the meter at any of `nodes`."""
        runs = [run for node in nodes for run in self.runs(platform, node, ipc, language)]
        found = [run.number("elapsed_s.client") for run in runs if not run.failed]
        return [seconds for seconds in found if seconds is not None]

    def passes(self, platform: str, node: str) -> int:
        """How many passes are here."""
        return len({run.key[2] for run in self.collected.runs.values()
                    if run.key[:2] == (platform, node)})  # fmt: skip

    def resources(
        self, platform: str, role: str, ipc: str, language: str, stem: str
    ) -> Series | None:
        """A resource of one role in every run that has it; None without any."""
        runs = self.runs(platform, UNMETERED, ipc, language)
        found = [run.number(f"{stem}.{role}") for run in runs]
        values = [value for value in found if value is not None]
        column = f"{stem}.{language}"
        return self._fuller(values, (platform, "resources", role, ipc), column, len(runs))

    def _fuller(
        self, values: list[float], key: tuple[str, str, str, str], column: str, runs: int
    ) -> Series | None:
        """The runs here, or the authors' sheet where that holds more of them."""
        sheet = self.sheets.get(key)
        listed = sheet.known(column) if sheet is not None else []
        if sheet is not None and len(listed) > len(values):
            few = f", {len(values)} of them here as files" if values else ""
            name = PurePosixPath(sheet.file)
            return Series(listed, f"{len(listed)} runs in the sheet {name.parent.name}/{name.name}"
                          + few)  # fmt: skip
        return Series(values, f"{len(values)} of {runs} runs") if values else None

    def padded(self, platform: str, node: str, ipc: str, language: str) -> list[float]:
        """The energies of the sheet that the tables were made from, padded rows included."""
        sheet = self.sheets.get((platform, "padded", node, ipc))
        return sheet.known(language) if sheet is not None else []

    def first_time(self, platform: str, ipc: str, language: str, role: str) -> float | None:
        """Elapsed seconds in the first pass with the meter at the client; None where unknown."""
        for run in self.runs(platform, "client", ipc, language):
            if run.key[2] == self._first[platform]:
                return run.number(f"elapsed_s.{role}")
        return None

    def first_run(self, platform: str, ipc: str, language: str) -> Observation | None:
        """The run of the first pass with the meter at the client."""
        runs = self.runs(platform, "client", ipc, language)
        return next((run for run in runs if run.key[2] == self._first[platform]), None)

    def times(self, platform: str, ipc: str, language: str, role: str) -> Series | None:
        """Elapsed seconds of a role with the meter at the client, over the runs that have it."""
        runs = self.runs(platform, "client", ipc, language)
        found = [run.number(f"elapsed_s.{role}") for run in runs]
        values = [value for value in found if value is not None]
        key = (platform, "time", "client", ipc)
        if role == "client":
            return self._fuller(values, key, language, len(runs))
        return Series(values, f"{len(values)} of {len(runs)} runs") if values else None
