"""The suite is tested by planted faults: each must be caught, by the clause that it breaks.

Here runs one mutant per kit and clause, the quick ones; all of them run by
`python -m contract.conformance.mutants`.
"""

from __future__ import annotations

import shutil
from collections import Counter

import pytest

from contract.conformance.mutants.runner import Mutant, mutants, planted_kit, try_mutants

SUBSET = {
    "python": None,
    "cpp": (
        "the payload's header is big-endian",
        "counters begin at 1",
        "receivers end at STOP without draining",
        "the intended time is recorded as begin",
        "the trailer is missing",
        "probes are recorded",
        "foreign messages are recorded",
        "overflow is silent",
        "receivers do not flag the warm-up",
        "timeouts are not flagged",
        "end of input is ignored",
        "the file's role is the next one",
    ),
}
"""Per kit, the mutants that the tests run; None: all. Compiling each takes its time."""
ALL = mutants()
CHOSEN = [m for m in ALL if SUBSET.get(m.language) is None or m.name in SUBSET[m.language]]


def test_every_kit_has_at_least_twelve_mutants() -> None:
    counts = Counter(mutant.language for mutant in ALL)
    assert counts and min(counts.values()) >= 12
    names = [mutant.identity for mutant in ALL]
    assert len(names) == len(set(names))


def test_the_subset_names_mutants_that_exist() -> None:
    for language, names in SUBSET.items():
        known = {mutant.name for mutant in ALL if mutant.language == language}
        assert set(names or ()) <= known


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.identity)
def test_the_fault_can_be_planted(mutant: Mutant, tmp_path) -> None:
    planted = planted_kit(mutant, tmp_path)
    assert mutant.replace in (planted / mutant.file).read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_planted_fault_is_caught_by_its_clause() -> None:
    chosen = [m for m in CHOSEN if m.language != "cpp" or shutil.which("g++")]
    outcomes = try_mutants(chosen)
    survivors = [
        f"{o.mutant.identity}: {o.mutant.clause} expected, {', '.join(o.clauses) or 'none'} found"
        f" {o.trouble}"
        for o in outcomes
        if not o.caught
    ]
    assert not survivors, "\n".join(survivors)
