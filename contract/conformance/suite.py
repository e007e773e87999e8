"""Runs the scenarios of a cell and turns what they found into one result per clause."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from . import failed_calls, lifecycle, payloads, tls, usage, window, wire, wire_calls
from .cell import CLAUSES, Broken, CellUnderTest, ClauseResult, Problem, Skipped
from .host import Watch
from .scenario import Bench, Scenario

WORKERS = 3
"""Scenarios at a time: they mostly wait, and more would disturb each other's schedules."""
STOLEN_MAX = 0.02
"""The share of the cores taken by the host above which a scenario that failed is run once more."""
DETAILS = 6


@dataclass
class Found:
    """What one scenario came to; `skipped` is the reason where it did not apply.

    `stolen_share` is above 0 where it failed first while the host took so much of the cores.
    `ended_by` is the clause whose breach ended it before its end, "" where it came to its end.
    """

    scenario: Scenario
    problems: list[Problem] = field(default_factory=list)
    skipped: str = ""
    stolen_share: float = 0.0
    ended_by: str = ""


def scenarios_for(cell: CellUnderTest, others: Sequence[CellUnderTest]) -> list[Scenario]:
    """Every scenario of a cell, the ones with the longest waits first."""
    patterns = list(cell.patterns)
    found = [
        *usage.scenarios(),
        *lifecycle.scenarios(patterns),
        *window.scenarios(patterns),
        *payloads.scenarios(patterns),
        *wire.scenarios(patterns),
        *wire_calls.scenarios(patterns),
        *failed_calls.scenarios(patterns),
        *tls.scenarios(patterns),
        *payloads.pair_scenarios(cell, list(others)),
    ]
    if not patterns:
        raise ValueError(f"{cell.name}: no patterns; node.toml must declare at least one")
    return found


def _selected(scenario: Scenario, only: Sequence[str] | None) -> bool:
    if only is None:
        return True
    names = {scenario.name, scenario.name.partition("[")[0], scenario.pair, *scenario.clauses}
    if scenario.pair:
        names.add("pair")
    return any(item in names for item in only if item)


def _run(scenario: Scenario, cell: CellUnderTest, folder: Path, endpoints: list[str]) -> Found:
    found = Found(scenario)
    try:
        found.problems = scenario.check(Bench(cell, folder, endpoints))
    except Skipped as reason:
        found.skipped = str(reason)
    except Broken as broken:
        found.problems, found.ended_by = [broken.problem], broken.problem.clause
    found.problems = [
        Problem(p.clause, f"{scenario.name}: {p.text}") for p in dict.fromkeys(found.problems)
    ]
    return found


def run_scenarios(
    cell: CellUnderTest,
    chosen: Sequence[Scenario],
    progress: Callable[[Found], None] | None = None,
    workers: int = WORKERS,
    watch: Callable[[], Watch] = Watch,
) -> list[Found]:
    """Runs the chosen scenarios; in the order given, `workers` at a time.

    Where the host had the cores, a node was late or dropped messages for no fault of its own: a
    scenario that failed meanwhile is run once more, and its second outcome stands.
    """

    def one(scenario: Scenario) -> Found:
        watched = watch()
        found = _run(scenario, cell, Path(folder), endpoints)
        share = watched.stolen_share()
        if found.problems and share > STOLEN_MAX:
            found = _run(scenario, cell, Path(folder), endpoints)
            found.stolen_share = share
        if progress is not None:
            progress(found)
        return found

    with (
        cell.service() as endpoints,
        tempfile.TemporaryDirectory(prefix="wattwire-check-") as folder,
        ThreadPoolExecutor(workers) as pool,
    ):
        return list(pool.map(one, chosen))


def _verdict(
    clause: str, name: str, examined: Sequence[Found], broken: list[Problem]
) -> ClauseResult:
    if broken:
        lines = [str(problem) for problem in broken[:DETAILS]]
        if len(broken) > DETAILS:
            lines.append(f"and {len(broken) - DETAILS} more")
        return ClauseResult(clause, name, "failed", "\n".join(lines), tuple(broken))
    ran = [found for found in examined if not found.skipped]
    whole = [found for found in ran if not found.ended_by]
    if whole:
        return ClauseResult(clause, name, "passed", f"{len(whole)} scenarios")
    reasons = dict.fromkeys(
        found.skipped or f"not tested: its scenarios ended early ({found.ended_by})"
        for found in examined
    )
    return ClauseResult(clause, name, "skipped", "; ".join(reasons) or "no scenario was chosen")


def results(founds: Sequence[Found]) -> list[ClauseResult]:
    """One result per clause over the cell's own scenarios, then one per pair of languages."""
    own = [found for found in founds if not found.scenario.pair]
    everything = [problem for found in own for problem in found.problems]
    said = []
    for clause, name in CLAUSES.items():
        examined = [found for found in own if clause in found.scenario.clauses]
        broken = [problem for problem in everything if problem.clause == clause]
        said.append(_verdict(clause, name, examined, broken))
    for pair in dict.fromkeys(found.scenario.pair for found in founds if found.scenario.pair):
        examined = [found for found in founds if found.scenario.pair == pair]
        broken = [problem for found in examined for problem in found.problems]
        said.append(_verdict("pair", pair, examined, broken))
    return said


def run_suite(
    cell: CellUnderTest,
    others: Sequence[CellUnderTest] = (),
    only: Sequence[str] | None = None,
    report: Callable[[ClauseResult], None] | None = None,
    progress: Callable[[Found], None] | None = None,
) -> list[ClauseResult]:
    """Checks a built cell, alone and paired with `others` of the same middleware.

    `only` restricts to clause numbers ("C-19"), scenario names ("sizes") or pairs ("pair": all),
    and with it a clause that nothing chosen examines has no result;
    `report` is called for each result at the end, `progress` for each scenario as it ends.
    """
    chosen = [s for s in scenarios_for(cell, others) if _selected(s, only)]
    said = results(run_scenarios(cell, chosen, progress))
    if only is not None:
        examined = {clause for s in chosen if not s.pair for clause in s.clauses} | {"pair"}
        said = [r for r in said if r.clause in examined or r.status == "failed"]
    if report is not None:
        for result in said:
            report(result)
    return said
