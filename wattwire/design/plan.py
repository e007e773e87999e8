"""The run table: blocks in seeded order, the primary factor's levels as neighbours.

Neighbours in a block give a two- to fivefold smaller standard deviation of their difference than
random places in a long block, because drift is slow; so a block is a random sequence of groups,
each group holding all levels of the primary factor for one combination of the other factors, in
random order within the group.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from wattwire.model.study import Plan
from wattwire.model.treatment import Level, Treatment


@dataclass(frozen=True)
class PlannedRun:
    """One run before it is executed. `predecessor` is the run id just before it, or ""."""

    run: str
    block: int
    position: int
    treatment: Treatment
    predecessor: str


def make_plan(treatments: Sequence[Treatment], plan: Plan) -> list[PlannedRun]:
    """Order all runs. The same seed gives the same order; blocks and positions count from 1."""
    runs: list[PlannedRun] = []
    for block in range(1, plan.blocks + 1):
        # One generator a block, so that adding blocks later never reorders the earlier ones.
        order = _block(treatments, plan.primary, random.Random(f"{plan.seed}:{block}"))
        for position, treatment in enumerate(order, 1):
            predecessor = runs[-1].run if runs else ""
            name = f"b{block:02d}-p{position:03d}"
            runs.append(PlannedRun(name, block, position, treatment, predecessor))
    return runs


def _block(treatments: Sequence[Treatment], primary: str, rng: random.Random) -> list[Treatment]:
    groups: dict[tuple[tuple[str, Level], ...], list[Treatment]] = {}
    for treatment in treatments:
        key = tuple(pair for pair in treatment.varied if pair[0] != primary)
        groups.setdefault(key, []).append(treatment)
    shuffled = list(groups.values())
    rng.shuffle(shuffled)
    for group in shuffled:
        rng.shuffle(group)
    return [treatment for group in shuffled for treatment in group]
