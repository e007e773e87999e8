"""Test that the cost of a kit applies to one build on one host."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from wattwire.rig.cache import HARNESS_COSTS
from wattwire.rig.harness_costs import HarnessCost, harness_cost, note_harness_cost

COST = HarnessCost(5.0, 3.0, 7.0, 100.0, 10, 64, "2026-01-31")


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("WATTWIRE_CACHE", str(tmp_path))
    return tmp_path


def test_a_cost_is_that_of_its_build_alone() -> None:
    note_harness_cost("one", COST)
    assert harness_cost("one") == COST
    assert harness_cost("another") is None


def test_another_hosts_cost_is_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    note_harness_cost("one", COST)
    monkeypatch.setattr(platform, "node", lambda: "elsewhere")
    assert harness_cost("one") is None


@pytest.mark.parametrize("text", ["", "[]", "{", '{"host": "x"}', "null"])
def test_a_damaged_file_is_no_cost(place: Path, text: str) -> None:
    note_harness_cost("one", COST)
    (place / HARNESS_COSTS / "one.json").write_text(text)
    assert harness_cost("one") is None
