"""Show from how many units of work it takes less time to hand them over, with an interval."""

from __future__ import annotations

import math
from typing import Any

from wattwire import stats
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.offloading.break_even import (
    ADDITIVE_MAX,
    BreakEvens,
    break_evens,
    time_per_unit,
)
from wattwire.analysis.responses import resolve
from wattwire.model import words
from wattwire.model.output_requests import ShownBreakEven
from wattwire.report.parts import Column, Fold, Table, Text
from wattwire.report.words.phrases import Phrase, Phrases
from wattwire.stats.break_even import BreakEven, InSomeBlocks, NeverUpTo, Without

PHRASES = Phrases(
    "break_even",
    {
        "varied": (
            "There is no break-even, because {factors:listed} also vary. Hold them constant, for "
            "example with --set."
        ),
        "no_worker": (
            "There is no break-even, because no valid run measured the time per unit of two of "
            "{workers:listed}."
        ),
        "lead": (
            "Offloading work pays from the smallest number of {units} at which the round trip "
            "over the carrier plus the time of the worker is at most the local time."
        ),
        "additive": (
            "The sum of round trip and work predicts the measured round trips of {worker} within "
            "{error:percent}."
        ),
        "not_additive": (
            "Round trip and work of {worker} are not additive: their sum deviates by up to "
            "{error:percent} (limit {limit:percent}) from the measured round trips, so its "
            "break-evens are approximate."
        ),
        "workers": "Time per unit of work",
        "workers_note": (
            "The slope of the difference between round trips with and without work, over the "
            "{units}, per block of runs. With three or more blocks, the table has the mean and a "
            "95 % t interval."
        ),
        "table": "Break-even ({units})",
        "note": (
            "Each block of runs gives one break-even; lines connect the round trips between the "
            "measured sizes. With three or more blocks, the table has the geometric mean and a "
            "95 % t interval, which is not simultaneous. If its upper end is above the largest "
            "measured size, handing over may never pay up to that size. Break-evens at fractions "
            "of a unit are not rounded."
        ),
        "slower": "Workers that are slower than the local work",
        "never": "does not pay up to {units:count} {unit_title}, the largest message",
        "some": (
            "{low:number} to {high:number} in {crossed} of "
            "{blocks:plural block of runs/blocks of runs}, else never"
        ),
        "some_equal": (
            "{units:number} in {crossed} of {blocks:plural block of runs/blocks of runs}, else "
            "never"
        ),
        "without": (
            "{estimate:number} (no interval: {blocks:plural block of runs/blocks of runs})"
        ),
    },
)


def parts(evidence: Evidence, spec: ShownBreakEven, number: int) -> list[Text | Table | Fold]:
    """Return the sentences and the tables of a requested break-even."""
    response = resolve(spec.response, evidence.described)
    contents: list[Text | Table | Fold] = [Text(spec.title, "question")]
    results = break_evens(evidence, spec, response)
    if results.varied:
        factors = [words.factor_title(name) for name in results.varied]
        return [*contents, Text(PHRASES("varied", factors=factors), "warning")]
    if len(results.workers) < 2:
        workers = list(spec.workers)
        return [*contents, Text(PHRASES("no_worker", workers=workers), "warning")]
    contents.append(Text(PHRASES("lead", units=spec.unit_title)))
    contents += [Text(spec.note, "note")] if spec.note else []
    for worker in results.workers:
        title, error = evidence.title(spec.by, worker.level), worker.error
        if worker.is_additive:
            contents.append(Text(PHRASES("additive", worker=title, error=error), "note"))
        else:
            text = PHRASES("not_additive", worker=title, error=error, limit=ADDITIVE_MAX)
            contents.append(Text(text, "warning"))
    contents.append(_workers(evidence, spec, results, response.unit, number))
    faster, slower = _tables(evidence, spec, results, number)
    contents += [faster] if faster.rows else []
    contents += [Fold(PHRASES("slower"), [slower])] if slower.rows else []
    return contents


def _workers(
    evidence: Evidence, spec: ShownBreakEven, results: BreakEvens, unit: str, number: int
) -> Table:
    rows = [
        {
            "worker": evidence.title(spec.by, worker.level),
            "blocks": len(worker.per_unit),
            "time": time_per_unit(worker),
        }
        for worker in results.workers
    ]
    columns = [
        Column("worker", "worker"),
        Column("blocks", "blocks of runs", "measured"),
        Column("time", "time per unit", "measured", unit),
    ]
    note = PHRASES("workers_note", units=spec.unit_title)
    return Table(f"break-even-workers-{number}", PHRASES("workers"), columns, rows, note)


def _tables(
    evidence: Evidence, spec: ShownBreakEven, results: BreakEvens, number: int
) -> tuple[Table, Table]:
    """Return the break-evens with workers that are faster, and with those that are not."""
    mean_of = {
        worker.level: math.fsum(worker.per_unit.values()) / len(worker.per_unit)
        for worker in results.workers
    }
    rows: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for offload in results.offloads:
        levels = {"carrier": offload.carrier, "worker": offload.worker, "own": offload.own}
        titles = {key: evidence.title(spec.by, level) for key, level in levels.items()}
        row = {**titles, "result": shown(offload.result, spec.unit_title)}
        rows[mean_of[offload.worker] < mean_of[offload.own]].append(row)
    columns = [
        Column("carrier", "carrier"),
        Column("own", "local work by"),
        Column("worker", "offloaded to"),
        Column("result", PHRASES("table", units=spec.unit_title), "measured"),
    ]
    title, note = PHRASES("table", units=spec.unit_title), PHRASES("note")
    return (
        Table(f"break-even-{number}", title, columns, rows[True], note),
        Table(f"break-even-slower-{number}", title, columns, rows[False]),
    )


def shown(result: BreakEven, unit_title: str) -> stats.Interval | Phrase:
    """Return a break-even as a cell of the table. `unit_title` is the plural of a unit of work."""
    if isinstance(result, NeverUpTo):
        # The largest message of a carrier may have room for a fraction of a unit.
        return PHRASES("never", units=math.floor(result.units), unit_title=unit_title)
    if isinstance(result, InSomeBlocks):
        low, high = result.low, result.high
        if words.number(low) == words.number(high):
            crossed, blocks = result.crossed, result.blocks
            return PHRASES("some_equal", units=low, crossed=crossed, blocks=blocks)
        return PHRASES("some", low=low, high=high, crossed=result.crossed, blocks=result.blocks)
    if isinstance(result, Without):
        return PHRASES("without", estimate=result.estimate, blocks=result.blocks)
    return result
