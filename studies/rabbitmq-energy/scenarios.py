"""Read the folders of the authors' experiments: tables that Grafana exported from Scaphandre."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wattwire.model.errors import UsageError

POWER, DOMAINS = "Power_Consumption_Cmdline.csv", "Scaph_Domain_Power.csv"
CPU = "Scaph_Process_Cpu.csv"
BROKER = "/opt/erlang/lib"
"""The begin of the column of RabbitMQ's process; Erlang executes it."""
NAME = re.compile(r"(\d+)_1_(Direct|Fanout|Topic)_(\d+)_(\d+)")
WATTS = {"µW": 1e-6, "mW": 1e-3, "W": 1.0, "kW": 1e3}
PERCENT = {"%": 1.0}
MISSING_DATA = (
    "a checkout of github.com/MariaVoreakou/data-analysis, whose folder data has folders such as "
    "Normal/100_1_Topic_3_100 with " + POWER
)


@dataclass(frozen=True)
class Scenario:
    """The levels of an experiment, from the name of its folder.

    The authors' tables name the parts: messages per second, exchange, routing keys and queues.
    """

    folder: Path
    rate_hz: int
    exchange: str
    routing_keys: int
    queues: int

    @property
    def name(self) -> str:
        return self.folder.name


@dataclass(frozen=True)
class Table:
    """A table of readings: the titles of its columns, and a row of texts per reading."""

    path: Path
    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def values(self, column: int, units: dict[str, float]) -> list[float]:
        """Return a column in the base unit of `units`. An empty value is 0: no such process.

        Raises UsageError with the line of a value that is no number with such a unit.
        """
        return [
            self._value(line, row[column], units) for line, row in enumerate(self.rows, start=2)
        ]

    def _value(self, line: int, text: str, units: dict[str, float]) -> float:
        if not text.strip():
            return 0.0
        number, _, unit = text.strip().partition(" ")
        try:
            return float(number) * units[unit]
        except (ValueError, KeyError):
            raise UsageError(
                f"{self.path}: line {line}: found {text!r}; allowed: a number and one of the units "
                f"{', '.join(units)}, such as 465 {next(iter(units))}"
            ) from None


def find(source: Path) -> tuple[list[Scenario], list[Path]]:
    """Return the experiments below a folder, by name, and the folders whose names are of no kind.

    Raises UsageError if there is no experiment, or one twice.
    """
    scenarios: dict[str, Scenario] = {}
    others = []
    for table in sorted(source.rglob(POWER)):
        match = NAME.fullmatch(table.parent.name)
        if match is None:
            others.append(table.parent)
            continue
        rate, exchange, keys, queues = match.groups()
        if (before := scenarios.get(table.parent.name)) is not None:
            raise UsageError(
                f"{source}: found the experiment {table.parent.name} twice, in {before.folder} and "
                f"{table.parent}; allowed: one folder of a name"
            )
        scenarios[table.parent.name] = Scenario(
            table.parent, int(rate), exchange.lower(), int(keys), int(queues)
        )
    if not scenarios:
        raise UsageError(f"{source}: found no experiment; allowed: {MISSING_DATA}")
    return sorted(scenarios.values(), key=lambda one: one.folder), others


def read_table(path: Path) -> Table:
    """Return the readings of a table. Raises UsageError if it is missing or a row is not whole."""
    if not path.is_file():
        raise UsageError(f"{path}: this file does not exist; allowed: {MISSING_DATA}")
    with path.open(newline="", encoding="utf-8-sig") as file:
        titles, *rows = [tuple(row) for row in csv.reader(file) if row] or [()]
    if len(titles) < 2 or not rows:
        raise UsageError(f"{path}: found no readings; allowed: a time and values in each line")
    for line, row in enumerate(rows, start=2):
        if len(row) != len(titles):
            raise UsageError(
                f"{path}: line {line}: found {len(row)} values; allowed: {len(titles)}, as in the "
                "first line"
            )
    return Table(path, titles, tuple(rows))


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
