"""Run the scenarios of a cell and return one result per clause."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from . import (
    failed_calls,
    lifecycle,
    members,
    network,
    payloads,
    pipeline,
    usage,
    velocity,
    window,
    wire,
    wire_calls,
)
from .cell import CLAUSES, Broken, CellUnderTest, ClauseResult, Problem, Skipped
from .certificates import security, tls
from .encryption.scenarios import scenarios as encryption_scenarios
from .host import Watch
from .roles import PATTERN_CLAUSES
from .scenario import Bench, Scenario

WORKERS = 5
"""Number of simultaneous scenarios. They mostly wait: the 146 of tcp/cpp use 8 s of CPU time."""
STOLEN_MAX = 0.02
"""Share of CPU time stolen by the host above which a failed scenario runs once more."""
DETAILS = 6
"""Maximum number of breaches in the text of one result."""


@dataclass
class ScenarioOutcome:
    """The outcome of one scenario; `skipped` is the reason if it does not apply to the cell.

    If the first try failed while the host stole CPU time, `stolen_share` is the stolen share.
    `ended_by` is the clause whose breach ended the scenario early, or "" if it was complete.
    """

    scenario: Scenario
    problems: list[Problem] = field(default_factory=list)
    skipped: str = ""
    stolen_share: float = 0.0
    ended_by: str = ""


def scenarios_for(cell: CellUnderTest, others: Sequence[CellUnderTest]) -> list[Scenario]:
    """Return the scenarios of a cell, in the order in which they start."""
    patterns = list(cell.patterns)
    all_scenarios = [
        *usage.scenarios(),
        *lifecycle.scenarios(patterns),
        *window.scenarios(patterns),
        *payloads.scenarios(patterns),
        *encryption_scenarios(patterns),
        *velocity.scenarios(patterns),
        *wire.scenarios(patterns),
        *wire_calls.scenarios(patterns),
        *failed_calls.scenarios(patterns),
        *pipeline.scenarios(patterns),
        *members.scenarios(patterns),
        *tls.scenarios(patterns),
        *security.scenarios(patterns),
        *network.scenarios(patterns),
        *payloads.pair_scenarios(cell, list(others)),
    ]
    if not patterns:
        raise ValueError(f"{cell.name}: no patterns; node.toml must declare at least one")
    return all_scenarios


def _selected(scenario: Scenario, only: Sequence[str] | None) -> bool:
    if only is None:
        return True
    names = {scenario.name, scenario.name.partition("[")[0], scenario.pair, *scenario.clauses}
    if scenario.pair:
        names.add("pair")
    return any(item in names for item in only if item)


def _run(
    scenario: Scenario, cell: CellUnderTest, folder: Path, endpoints: list[str]
) -> ScenarioOutcome:
    outcome = ScenarioOutcome(scenario)
    try:
        outcome.problems = scenario.check(Bench(cell, folder, endpoints))
    except Skipped as reason:
        outcome.skipped = str(reason)
    except Broken as error:
        outcome.problems, outcome.ended_by = [error.problem], error.problem.clause
    outcome.problems = [
        Problem(p.clause, f"{scenario.name}: {p.text}") for p in dict.fromkeys(outcome.problems)
    ]
    return outcome


def run_scenarios(
    cell: CellUnderTest,
    chosen: Sequence[Scenario],
    progress: Callable[[ScenarioOutcome], None] | None = None,
    workers: int = WORKERS,
    watch: Callable[[], Watch] = Watch,
) -> list[ScenarioOutcome]:
    """Run the chosen scenarios, `workers` at a time, and return their outcomes in the same order.

    A scenario that fails while the host steals CPU time runs once more, because the theft may have
    delayed its nodes or caused losses. The second outcome replaces the first.
    """

    def run_one(scenario: Scenario) -> ScenarioOutcome:
        host_watch = watch()
        outcome = _run(scenario, cell, Path(folder), endpoints)
        stolen_share = host_watch.stolen_share()
        if outcome.problems and stolen_share > STOLEN_MAX:
            outcome = _run(scenario, cell, Path(folder), endpoints)
            outcome.stolen_share = stolen_share
        if progress is not None:
            progress(outcome)
        return outcome

    with (
        cell.service() as endpoints,
        tempfile.TemporaryDirectory(prefix="wattwire-check-") as folder,
        ThreadPoolExecutor(workers) as pool,
    ):
        return list(pool.map(run_one, chosen))


def _verdict(
    clause: str, name: str, examined: Sequence[ScenarioOutcome], breaches: list[Problem]
) -> ClauseResult:
    if breaches:
        lines = [str(problem) for problem in breaches[:DETAILS]]
        if len(breaches) > DETAILS:
            lines.append(f"and {len(breaches) - DETAILS} more")
        return ClauseResult(clause, name, "failed", "\n".join(lines), tuple(breaches))
    applicable = [outcome for outcome in examined if not outcome.skipped]
    completed = [outcome for outcome in applicable if not outcome.ended_by]
    if completed:
        return ClauseResult(clause, name, "passed", f"{len(completed)} scenarios")
    reasons = dict.fromkeys(
        outcome.skipped or f"not tested: its scenarios ended early ({outcome.ended_by})"
        for outcome in examined
    )
    return ClauseResult(clause, name, "skipped", "; ".join(reasons) or _unexamined(clause))


def _unexamined(clause: str) -> str:
    """Return the reason why a clause has no scenario; usually, the cell lacks its pattern."""
    patterns = [name for name, own in PATTERN_CLAUSES.items() if own == clause]
    return f"the cell has no {patterns[0]}" if patterns else "no scenario of the cell tests it"


def results(outcomes: Sequence[ScenarioOutcome]) -> list[ClauseResult]:
    """Return one result per clause from the cell's own scenarios, then one per language pair."""
    own_outcomes = [outcome for outcome in outcomes if not outcome.scenario.pair]
    own_breaches = [problem for outcome in own_outcomes for problem in outcome.problems]
    clause_results = []
    for clause, name in CLAUSES.items():
        examined = [outcome for outcome in own_outcomes if clause in outcome.scenario.clauses]
        breaches = [problem for problem in own_breaches if problem.clause == clause]
        clause_results.append(_verdict(clause, name, examined, breaches))
    for pair in dict.fromkeys(
        outcome.scenario.pair for outcome in outcomes if outcome.scenario.pair
    ):
        examined = [outcome for outcome in outcomes if outcome.scenario.pair == pair]
        breaches = [problem for outcome in examined for problem in outcome.problems]
        clause_results.append(_verdict("pair", pair, examined, breaches))
    return clause_results


def run_suite(
    cell: CellUnderTest,
    others: Sequence[CellUnderTest] = (),
    only: Sequence[str] | None = None,
    report: Callable[[ClauseResult], None] | None = None,
    progress: Callable[[ScenarioOutcome], None] | None = None,
) -> list[ClauseResult]:
    """Check a built cell, alone and paired with `others` of the same middleware.

    `only` selects scenarios by clause number ("C-19"), by name ("sizes") or by pair ("pair" selects
    all pairs); clauses that no selected scenario examines then have no result. The suite calls
    `progress` for each scenario that ends, and `report` for each result at the end.
    """
    chosen = [s for s in scenarios_for(cell, others) if _selected(s, only)]
    clause_results = results(run_scenarios(cell, chosen, progress))
    if only is not None:
        examined = {clause for s in chosen if not s.pair for clause in s.clauses} | {"pair"}
        clause_results = [r for r in clause_results if r.clause in examined or r.status == "failed"]
    if report is not None:
        for result in clause_results:
            report(result)
    return clause_results
