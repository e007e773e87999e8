"""Test that the suite detects planted faults by the clauses that they break.

These tests run the mutants marked as quick; `python -m contract.conformance.mutants` runs all.
"""

from __future__ import annotations

from collections import Counter

import pytest

from contract.conformance.cell import CLAUSES
from contract.conformance.mutants.runner import Mutant, mutants, plant, try_mutants
from contract.conformance.repository import missing_tools, without

ALL = mutants()


def test_every_kit_has_at_least_twelve_mutants() -> None:
    counts = Counter(mutant.language for mutant in ALL)
    assert counts and min(counts.values()) >= 12
    names = [mutant.identity for mutant in ALL]
    assert len(names) == len(set(names))


def test_every_clause_has_a_mutant_in_every_kit_or_a_reason() -> None:
    for language in {mutant.language for mutant in ALL}:
        planted = {mutant.clause for mutant in ALL if mutant.language == language}
        unplanted = set(without(language))
        assert sorted(set(CLAUSES) - planted - unplanted) == [], language
        assert sorted(planted & unplanted) == [], language
        assert all(without(language).values()), language


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.identity)
def test_the_fault_can_be_planted(mutant: Mutant, tmp_path) -> None:
    assert mutant.replace in plant(mutant, tmp_path).file.read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_planted_fault_is_caught_by_its_clause() -> None:
    chosen = [m for m in ALL if m.quick and not missing_tools(m.language)]
    outcomes = try_mutants(chosen)
    survivors = [
        f"{o.mutant.identity}: {o.mutant.clause} expected, {', '.join(o.clauses) or 'none'} found"
        f" {o.error}"
        for o in outcomes
        if not o.caught
    ]
    assert not survivors, "\n".join(survivors)
