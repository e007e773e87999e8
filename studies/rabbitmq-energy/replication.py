"""Read the authors' measurements of RabbitMQ: power, CPU time and counters of each experiment."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from wattwire.imports import Check, Imported
from wattwire.imports.agreement import agrees, close
from wattwire.imports.imported import Match, Remark, SetAside
from wattwire.model.words import plural

from .scenarios import (
    BROKER,
    CPU,
    DOMAINS,
    PERCENT,
    POWER,
    WATTS,
    Scenario,
    Table,
    find,
    mean,
    read_table,
)

RECIPES = {"default": "the mean of all readings of an experiment, as the authors' scripts do"}
POWER_W, TOTAL_W, COUNTED_W, CPU_PERCENT = (
    "broker_power_w", "processes_power_w", "counters_power_w", "broker_cpu_percent",
)  # fmt: skip
COLUMNS = {
    POWER_W: {"unit": "W", "kind": "estimate", "direction": "lower",
              "summary": "power that Scaphandre attributes to RabbitMQ's process, mean",
              "title": "attributed power of RabbitMQ"},
    TOTAL_W: {"unit": "W", "kind": "estimate", "direction": "",
              "summary": "power that Scaphandre attributes to all listed processes, mean",
              "title": "attributed power of all processes"},
    COUNTED_W: {"unit": "W", "kind": "measured", "direction": "lower",
                "summary": "power of the processor's counters core and dram, mean",
                "title": "power of the counters"},
    CPU_PERCENT: {"unit": "%", "kind": "measured", "direction": "lower",
                  "summary": "CPU use of Erlang's processes, mean", "title": "CPU use of RabbitMQ"},
}  # fmt: skip
PRINTED = (
    ("output/avg_power_consumption_results.csv", "Average Power Consumption (mW)", POWER_W, 1000.0),
    ("output/avg_cpu_results.csv", "Average CPU usage of Erlang Processes (%)", CPU_PERCENT, 1.0),
)
"""Tables of the authors: file, column, our column, and its factor to their unit."""
ABSTRACT_PERCENT = "31"
"""The abstract: the architecture leads "to up to 31 % reduction in power consumption"."""
FACTORS = ("exchange", "rate_hz", "routing_keys", "queues")


def read(source: Path, recipe: str) -> Imported:
    """Return the experiments below `source` as a campaign of one run each.

    Raises UsageError if there is none, or if a table is missing or has another form.
    """
    scenarios, others = find(source)
    rows, provenance, unused = [], [], []
    days: dict[str, set[str]] = {}
    for position, scenario in enumerate(scenarios, 1):
        powers = read_table(scenario.folder / POWER)
        days.setdefault(scenario.exchange, set()).add(powers.rows[0][0].partition(" ")[0])
        values = dict(_values(scenario, powers))
        rows.append(_row(position, scenario, {name: v for name, (v, *_) in values.items()}))
        provenance += [
            {"run": scenario.name, "column": name, "rows_used": used, "rows_left_out": 0,
             "files": [(scenario.folder / file).relative_to(source).as_posix()],
             "how": "mean over the readings"}
            for name, (_, file, used) in values.items()
        ]  # fmt: skip
        if POWER_W not in values:
            unused.append(SetAside(f"{scenario.folder.relative_to(source).as_posix()}/{POWER}", 0,
                                   "no column of RabbitMQ's process"))  # fmt: skip
    unused += [
        SetAside(path.relative_to(source).as_posix(), 0, "the name is of no experiment")
        for path in others
    ]
    by_name = {row["run"]: row for row in rows}
    return Imported(
        study=_study(scenarios),
        runs=pl.DataFrame(rows, infer_schema_length=None),
        provenance=pl.DataFrame(provenance),
        set_aside=tuple(unused),
        columns=COLUMNS,
        reasons={
            row["run"]: "no power of RabbitMQ's process" for row in rows if row[POWER_W] is None
        },
        checks=tuple(_checks(source, by_name, recipe)),
        remarks=tuple(_remarks(rows, days)),
        machine={
            "hosts": {"the authors' broker": {"facts": [
                {"key": "cpu_name", "value": "Intel Core i7-4790K", "unit": "", "check": "report"},
            ], "meters": []}},
        },
    )  # fmt: skip


def _values(scenario: Scenario, powers: Table) -> Iterator[tuple[str, tuple[float, str, int]]]:
    """Yield each response of an experiment with its mean, its file and its number of readings."""
    processes = range(1, len(powers.titles))
    columns = {at: powers.values(at, WATTS) for at in processes}
    broker = next((at for at in processes if powers.titles[at].startswith(BROKER)), None)
    if broker is not None:
        yield POWER_W, (mean(columns[broker]), POWER, len(powers.rows))
        total_w = sum(mean(column) for column in columns.values())
        yield TOTAL_W, (total_w, POWER, len(powers.rows))
    counters = read_table(scenario.folder / DOMAINS)
    counted_w = sum(mean(counters.values(at, WATTS)) for at in range(1, len(counters.titles)))
    yield COUNTED_W, (counted_w, DOMAINS, len(counters.rows))
    shares = read_table(scenario.folder / CPU)
    erlang = [at for at, title in enumerate(shares.titles) if "erlang" in title.lower()]
    percent = sum(mean(shares.values(at, PERCENT)) for at in erlang)
    yield CPU_PERCENT, (percent, CPU, len(shares.rows))


def _row(position: int, scenario: Scenario, values: Mapping[str, float]) -> dict[str, Any]:
    is_valid = POWER_W in values
    return {
        "run": scenario.name, "attempt": 1, "block": 1, "position": position,
        "verdict": "valid" if is_valid else "invalid", "outcome": "completed", "used": is_valid,
        "control": "", "factor.exchange": scenario.exchange, "factor.rate_hz": scenario.rate_hz,
        "factor.routing_keys": scenario.routing_keys, "factor.queues": scenario.queues,
        **{name: values.get(name) for name in COLUMNS},
    }  # fmt: skip


def _study(scenarios: list[Scenario]) -> Mapping[str, Any]:
    levels = {name: sorted({getattr(one, name) for one in scenarios}) for name in FACTORS}
    return {
        "name": "rabbitmq-energy",
        "title": "Power of RabbitMQ, as Voreakou, Kousiouris and Nikolaidou measured it",
        "source": "10.48550/arXiv.2506.10693",
        "question": [
            {"id": "RE1", "factors": ["exchange"], "responses": [POWER_W, CPU_PERCENT],
             "text": "Which exchange uses the least power?"},
            {"id": "RE2", "factors": ["rate_hz"], "responses": [POWER_W, CPU_PERCENT],
             "text": "How does power depend on the rate of messages?"},
        ],
        "factors": levels,
        "fixed": {"pattern": "topic"},
        "plan": {"primary": "exchange", "blocks": 1},
        "answers": {"baseline": {name: values[0] for name, values in levels.items()}},
    }  # fmt: skip


def _checks(source: Path, rows: Mapping[str, Mapping[str, Any]], recipe: str) -> Iterator[Check]:
    """Yield each number of the authors' tables, and that of the abstract."""
    for file, title, column, factor in PRINTED:
        path = source / file
        if not path.is_file():
            continue
        with path.open(newline="", encoding="utf-8-sig") as table:
            lines = list(csv.DictReader(table))
        for line in lines:
            name, printed = line["Experiment"], line.get(title) or ""
            value = rows[name][column] if name in rows else None
            if not printed:
                continue
            ours = None if value is None else value * factor
            match = (
                Match.NOT_COMPUTABLE
                if ours is None
                else Match.EXACT
                if agrees(printed, ours)
                else Match.WITHIN_1_PERCENT
                if close(printed, ours)
                else Match.DIFFERS
            )
            place = {"experiment": name, "column": title}
            yield Check(path.name, place, printed, ours, match, recipe)
    pair = largest_difference(list(rows.values()))
    if pair is not None:
        more, less = (row[POWER_W] for row in pair)
        reduction, increase = 100 * (1 - less / more), 100 * (more / less - 1)
        if agrees(ABSTRACT_PERCENT, reduction):
            match, value, explanation = Match.EXACT, reduction, ""
        elif agrees(ABSTRACT_PERCENT, increase):
            match, value = Match.BY_SEARCH, increase
            explanation = (
                f"the larger power relative to the smaller one; the reduction is {reduction:.1f} %"
            )
        else:
            match, value, explanation = Match.DIFFERS, reduction, ""
        yield Check(
            "Abstract", {"column": "largest reduction (%)"}, ABSTRACT_PERCENT, value, match, recipe,
            searched=2, explanation=explanation,
        )  # fmt: skip


def largest_difference(
    rows: list[Mapping[str, Any]],
) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """Return the direct and fanout experiments of equal levels whose powers differ most.

    The one with more power is first. The result is None without such a pair.
    """
    pairs: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row[POWER_W] is not None and row["factor.exchange"] in ("direct", "fanout"):
            key = tuple(row[f"factor.{name}"] for name in FACTORS[1:])
            pairs.setdefault(key, []).append(row)
    ordered = [
        sorted(pair, key=lambda row: -row[POWER_W]) for pair in pairs.values() if len(pair) == 2
    ]
    if not ordered:
        return None
    more, less = max(ordered, key=lambda pair: pair[0][POWER_W] / pair[1][POWER_W])
    return more, less


def _remarks(rows: list[Mapping[str, Any]], days: Mapping[str, set[str]]) -> Iterator[Remark]:
    """Yield what qualifies each answer. `days` has the days of each exchange's experiments."""
    exceeding = [row for row in rows if (row[TOTAL_W] or 0.0) > row[COUNTED_W]]
    if exceeding:
        most = max(exceeding, key=lambda row: row[TOTAL_W] / row[COUNTED_W])
        yield Remark(
            "Attributed power above the power of the counters",
            f"In {len(exceeding)} of {plural(len(rows), 'experiment')}, the power that Scaphandre "
            "attributes to processes exceeds that of the processor's counters core and dram. In "
            f"{most['run']} it is {most[TOTAL_W]:.1f} W, which is "
            f"{most[TOTAL_W] / most[COUNTED_W]:.1f} times the {most[COUNTED_W]:.1f} W of the "
            "counters. These leave out a part of the package, which can explain some watts, but "
            "not a multiple. The attributed power is then no measured power.",
            tuple(
                {"experiment": row["run"], TOTAL_W: row[TOTAL_W], COUNTED_W: row[COUNTED_W]}
                for row in exceeding
            ),
            at_top=True,
        )
    listed = "; ".join(f"{exchange}: {', '.join(sorted(days[exchange]))}" for exchange in days)
    yield Remark(
        "One run of each treatment",
        "Each experiment has one run, so there is no interval: the same experiment on another day "
        f"may differ as much as two exchanges do. Days of the runs: {listed}.",
        at_top=True,
    )
