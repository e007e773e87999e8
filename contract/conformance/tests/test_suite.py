"""Test that the cells that test kits satisfy all clauses, and that failures name their clause."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from contract.conformance import CLAUSES, CellUnderTest, ClauseResult, run_suite
from contract.conformance.cell import Problem
from contract.conformance.host import Watch
from contract.conformance.mutants.runner import mutants
from contract.conformance.repository import kit_languages, proving_middleware, without
from contract.conformance.scenario import Scenario
from contract.conformance.suite import results, run_scenarios, scenarios_for

LANGUAGES = kit_languages()
WHOLE = [
    pytest.param(name, marks=() if proving_middleware(name) == "loopback" else pytest.mark.matrix)
    for name in LANGUAGES
]
"""`make test-full` checks every kit with the golden vectors and its quick mutants. It runs the
whole suite only for kits that loopback tests; `make test-all` runs it for all kits.
"""
Cells = Callable[[str], CellUnderTest]


@pytest.fixture(scope="session")
def checked(cells: Cells) -> Callable[[str], dict[str, ClauseResult]]:
    """Return a function that runs the suite once for each language and returns its results.

    The results are by clause.
    """
    results_by_language: dict[str, dict[str, ClauseResult]] = {}

    def check(language: str) -> dict[str, ClauseResult]:
        if language not in results_by_language:
            results = {r.clause: r for r in run_suite(cells(language), [])}
            results_by_language[language] = results
        return results_by_language[language]

    return check


def clauses_of_other_cells(language: str) -> set[str]:
    """Return the clauses all of whose mutants name a cell of another middleware."""
    own = proving_middleware(language)
    own_mutants = [mutant for mutant in mutants() if mutant.language == language]
    by_own_cell = {mutant.clause for mutant in own_mutants if mutant.middleware in ("", own)}
    return {mutant.clause for mutant in own_mutants} - by_own_cell


@pytest.mark.slow
@pytest.mark.parametrize("language", WHOLE)
@pytest.mark.parametrize("clause", CLAUSES)
def test_clause(
    language: str, clause: str, checked: Callable[[str], dict[str, ClauseResult]]
) -> None:
    result = checked(language)[clause]
    untested = {*without(language), *clauses_of_other_cells(language)}
    allowed = {"passed", "skipped"} if clause in untested else {"passed"}
    assert result.status in allowed, result.detail


def fake_cell(folder: Path, program: str) -> CellUnderTest:
    path = folder / "node.py"
    path.write_text(program)
    return CellUnderTest(
        name="fake/python",
        argv=[sys.executable, str(path)],
        patterns=["topic"],
        capabilities=["encoding.bytes", "pacing.kit", "loop.open"],
        listens={"topic": "none"},
    )


def test_a_silent_node_breaks_the_selected_clauses(tmp_path: Path) -> None:
    cell = fake_cell(tmp_path, "raise SystemExit(0)\n")
    results = {r.clause: r for r in run_suite(cell, only=["C-01", "C-03", "fan-out"])}
    assert results["C-01"].status == "failed"
    assert "expected exit code 2, but the node ended with 0" in results["C-01"].detail
    assert results["C-03"].status == "failed"
    assert results["C-07"].status == "failed"
    assert "no READY line" in results["C-07"].detail


def test_a_cell_that_never_becomes_ready_passes_no_later_clause(tmp_path: Path) -> None:
    cell = fake_cell(tmp_path, "raise SystemExit(0)\n")
    results = {r.clause: r for r in run_suite(cell, only=["open", "C-10"])}
    assert results["C-07"].status == "failed"
    assert results["C-10"].status == "skipped"
    assert "not tested: its scenarios ended early (C-07)" in results["C-10"].detail
    assert "passed" not in {result.status for result in results.values()}


def test_the_suite_reports_all_problems(tmp_path: Path) -> None:
    cell = fake_cell(tmp_path, "print('hello')\nraise SystemExit(2)\n")
    results = {r.clause: r for r in run_suite(cell, only=["command-line"])}
    assert len(results["C-01"].problems) == 4
    assert all(str(problem).startswith("C-01: ") for problem in results["C-01"].problems)


class Host(Watch):
    """A host that steals a given number of 1000 ticks."""

    def __init__(self, folder: Path, stolen: int) -> None:
        self._file, self._after = folder / "stat", f"cpu 0 0 0 {1000 - stolen} 0 0 0 {stolen} 0 0"
        self._file.write_text("cpu 0 0 0 0 0 0 0 0 0 0\n")
        super().__init__(self._file)

    def stolen_share(self) -> float:
        self._file.write_text(self._after)
        return super().stolen_share()


@pytest.mark.parametrize(
    ("stolen", "failures", "tries", "fails"),
    [(50, 1, 2, False), (50, 2, 2, True), (50, 0, 1, False), (10, 1, 1, True)],
)
def test_a_scenario_that_fails_while_cpu_time_is_stolen_runs_once_more(
    tmp_path: Path, stolen: int, failures: int, tries: int, fails: bool
) -> None:
    calls = []

    def check(_bench: object) -> list[Problem]:
        calls.append(1)
        return [Problem("C-10", "late")] if len(calls) <= failures else []

    cell = fake_cell(tmp_path, "")
    scenario = Scenario("open[topic]", ("C-10",), check)
    (outcome,) = run_scenarios(cell, [scenario], watch=lambda: Host(tmp_path, stolen))
    assert len(calls) == tries
    assert bool(outcome.problems) == fails
    assert outcome.stolen_share == (stolen / 1000 if tries == 2 else 0.0)


def test_a_child_that_holds_the_descriptor_of_lines_is_named(cells: Cells) -> None:
    cell = cells("python")
    for first, held in (("sleep 60 &", True), ("sleep 60 3>&- &", False), ("", False)):
        argv = ["sh", "-c", f'{first} exec "$@"', "sh", *cell.argv]
        (result,) = [
            r for r in run_suite(replace(cell, argv=argv), only=["children"]) if r.clause == "C-05"
        ]
        assert (result.status == "failed") is held, result.detail
        assert ("holds descriptor 3: sleep 60" in result.detail) is held


def test_undeclared_capabilities_are_skipped_with_the_reason(cells: Cells) -> None:
    cell = cells("python")
    kept = [name for name in cell.capabilities if name != "literal"]
    results = {r.clause: r for r in run_suite(replace(cell, capabilities=kept), only=["literal"])}
    assert results["C-22"].status == "skipped"
    assert "does not declare literal" in results["C-22"].detail


def test_clauses_without_a_selected_scenario_have_no_result(cells: Cells) -> None:
    statuses = {r.clause: r.status for r in run_suite(cells("python"), only=["command-line"])}
    assert statuses == {"C-01": "passed"}


def test_a_clause_of_a_pattern_without_scenarios_is_skipped_with_the_pattern() -> None:
    details = {result.clause: result.detail for result in results([])}
    assert details["C-37"] == "the cell has no pipeline"
    assert details["C-19"] == "no scenario of the cell tests it"


def test_selecting_pairs_excludes_the_cells_own_scenarios(cells: Cells) -> None:
    other = replace(cells("python"), name="loopback/other")
    results = run_suite(cells("python"), [other], only=["pair"])
    assert [(r.name, r.status) for r in results] == [
        ("pair[loopback: python -> other]", "passed"),
        ("pair[loopback: other -> python]", "passed"),
    ]


def test_a_node_refuses_a_capability_that_only_its_manifest_lacks(cells: Cells) -> None:
    cell = cells("python")
    kept = [name for name in cell.capabilities if name != "literal"]
    lacking = replace(cell, capabilities=kept)
    results = {r.clause: r for r in run_suite(lacking, only=["undeclared"])}
    assert results["C-03"].status == "passed"


def test_a_scenario_examines_every_testable_clause(cells: Cells) -> None:
    examined = {c for s in scenarios_for(cells("python"), []) for c in s.clauses}
    assert examined == set(CLAUSES)


def test_scenario_names_are_unique(cells: Cells) -> None:
    other = replace(cells("python"), name="loopback/other")
    names = [scenario.name for scenario in scenarios_for(cells("python"), [other])]
    assert len(names) == len(set(names))
