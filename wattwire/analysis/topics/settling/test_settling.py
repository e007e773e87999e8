"""Test that all programs have the same warm-up, which the settling runs determine."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import polars as pl

from wattwire.analysis.topics.settling.warm_up_rule import judge, unknown_cells, unsettled_cells
from wattwire.design import make_plan
from wattwire.model.errors import UsageError
from wattwire.model.study import parse_study
from wattwire.model.tests.deployments import run_of_nodes
from wattwire.model.treatment import Treatment
from wattwire.model.warm_up import SETTLING, SETTLING_RUNS
from wattwire.run.node_specs import warm_up_calls
from wattwire.store import Campaign, Messages

CALLS, FAST_US, SLOW_US = 2000, 100.0, 900.0
DOCUMENT = {
    "factors": {"variant": ["base", "head"]},
    "fixed": {"cell": "made/up", "pattern": "service", "loop": "closed", "count": 500},
    "variants": {"base": {}, "head": {}},
    "plan": {"blocks": 2, "primary": "variant"},
}


def judged(slow_calls: dict[str, int], **plan: Any) -> dict[str, Any]:
    return judge(cast(Campaign, Settled(slow_calls, plan)))


class Settled:
    """A campaign's settling runs in memory. The first `slow_calls` calls of a variant are slow."""

    def __init__(self, slow_calls: dict[str, int], plan: dict[str, Any] | None = None) -> None:
        document = {**DOCUMENT, "plan": {**DOCUMENT["plan"], **(plan or {})}}
        self.study = study = parse_study("made-up", document, "test")
        treatments = [
            Treatment.of({"variant": name}, study.held) for name in study.factors["variant"]
        ]
        self.planned = make_plan(treatments, study.plan)
        self._slow_calls = slow_calls
        self._of = {run.run: run.treatment for run in self.planned}

    @property
    def plan(self) -> list[dict[str, Any]]:
        return [
            {
                "run": run.run, "control": run.control, "treatment_key": run.treatment.key,
                "treatment": dict(run.treatment.varied), "levels": dict(run.treatment.levels),
                "cells": {"server": "made/up", "client": "made/up"},
            }
            for run in self.planned
        ]  # fmt: skip

    def rows(self) -> list[dict[str, Any]]:
        """Return one attempt per settling run. The base's runs were disturbed by other load."""
        return [
            {"run": run.run, "control": run.control,
             "verdict": "invalid" if self._of[run.run]["variant"] == "base" else "valid"}
            for run in self.planned
        ]  # fmt: skip

    def run(self, run: str) -> dict[str, Any]:
        return run_of_nodes({0: "server", 1: "client"})

    def recorded(self, run: str) -> Messages:
        slow = self._slow_calls[str(self._of[run]["variant"])]
        if slow < 0:
            raise UsageError("no attempt left any")
        rng = np.random.default_rng(sum(map(ord, run)))
        took_ns = 1000.0 * (FAST_US + (np.arange(CALLS) < slow) * (SLOW_US - FAST_US))
        took_ns *= rng.uniform(0.98, 1.02, CALLS)
        ends_ns = np.cumsum(took_ns).astype(np.int64)
        begins_ns = ends_ns - took_ns.astype(np.int64)
        counters = np.arange(CALLS, dtype=np.uint64)
        return Messages.of(
            pl.DataFrame({"counter": counters, "begin_ns": begins_ns, "end_ns": ends_ns})
            .with_columns(node=1, sender=1, kind=pl.lit("call"), flags=0)
        )  # fmt: skip


def test_variants_have_settling_runs_of_their_own_and_one_warm_up() -> None:
    campaign = Settled({"base": 300, "head": 30})
    settling = [run.treatment["variant"] for run in campaign.planned if run.control == SETTLING]
    assert sorted(settling) == ["base"] * SETTLING_RUNS + ["head"] * SETTLING_RUNS
    found = judge(cast(Campaign, campaign))
    needs = {one["cell"]: one["calls"] for one in found["cells"]}
    assert needs == {"made/up variant base": 500, "made/up variant head": 50}
    assert found["calls"] == 500, "what is compared has the longest warm-up that any of it needs"
    assert unsettled_cells(found) == []
    stated = Settled({}, {"warmup_calls": found["calls"]})
    assert {warm_up_calls(run.treatment, stated.study.plan) for run in stated.planned} == {500}


def test_a_bound_on_the_time_names_whom_the_warm_up_is_too_short_for() -> None:
    # A fast call takes 0.1 ms, so 200 calls fit into 0.03 s and 500 do not.
    found = judged({"base": 300, "head": 30}, warmup_max_s=0.03)
    assert (found["calls"], found["wanted"]) == (200, 500)
    assert unsettled_cells(found) == ["made/up variant base"]
    assert "made/up variant base would need 500" in found["words"]
    assert (
        f"{SETTLING_RUNS} of {2 * SETTLING_RUNS} settling runs ran under other load"
        in found["words"]
    )


def test_a_variant_without_a_settling_run_leaves_the_number_to_the_others() -> None:
    found = judged({"base": -1, "head": 30})
    assert found["calls"] == 50
    assert unknown_cells(found) == ["made/up variant base"]
    assert "the warm-up of made/up variant base is unknown" in found["words"]
