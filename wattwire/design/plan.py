"""The run table: blocks in seeded order, the primary factor's levels as neighbours.

Neighbours in a block give a two- to fivefold smaller standard deviation of their difference than
random places in a long block, because drift is slow; so a block is a random sequence of groups,
each group holding all levels of the primary factor for one combination of the other factors, in
random order within the group.

Each block also holds three control runs of one treatment, as neighbours: two identical labels,
whose difference is noise whatever it looks like, and one whose sampler is silent between marks,
which says what sampling costs.

Runs that count system calls come after all blocks, in blocks of their own: what they slow down
is no neighbour of anything that is timed. Settling runs come before the first block, in rounds
that are numbered like blocks, as block 0.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from wattwire.design.settling import piloted
from wattwire.model.study import TRACED, Plan
from wattwire.model.treatment import Level, Treatment
from wattwire.model.warm_up import SETTLING, SETTLING_RUNS

SAME, SAME_AGAIN, UNSAMPLED = "a", "b", "unsampled"
CONTROLS = (SAME, SAME_AGAIN, UNSAMPLED)


@dataclass(frozen=True)
class PlannedRun:
    """One run before it is executed. `predecessor` is the run id just before it, or "".

    `control` is "" for the study's own runs, else one of CONTROLS, TRACED or SETTLING.
    """

    run: str
    block: int
    position: int
    treatment: Treatment
    predecessor: str
    control: str = ""

    def label(self) -> str:
        """The treatment's label; a run beside the design says which one it is."""
        words = self.treatment.label()
        if self.control == SETTLING:
            return f"{words} (settling run)"
        return f"{words} (control {self.control})" if self.control else words


def make_plan(treatments: Sequence[Treatment], plan: Plan) -> list[PlannedRun]:
    """Order all runs. The same seed gives the same order; blocks and positions count from 1."""
    runs = _settling_runs(piloted(treatments, plan), plan)
    for block in range(1, plan.blocks + 1):
        _add_block(runs, treatments, plan, block, plan.controls)
    for block in range(plan.blocks + 1, plan.blocks + plan.syscall_runs + 1):
        _add_block(runs, treatments, plan, block, controls=False, kind=TRACED)
    return runs


def more_blocks(
    runs: Sequence[PlannedRun], treatments: Sequence[Treatment], plan: Plan
) -> list[PlannedRun]:
    """As many blocks again as the plan has, of some treatments only, after those of `runs`.

    Without control runs: their treatment may not be among these.
    """
    everything = list(runs)
    first = max((run.block for run in runs), default=0) + 1
    for block in range(first, first + plan.blocks):
        _add_block(everything, treatments, plan, block, controls=False)
    return everything[len(runs) :]


def _settling_runs(treatments: Sequence[Treatment], plan: Plan) -> list[PlannedRun]:
    """All treatments once a round, in random order: a drifting machine touches all cells alike."""
    runs: list[PlannedRun] = []
    for turn in range(1, SETTLING_RUNS + 1) if treatments else ():
        order = list(treatments)
        random.Random(f"{plan.seed}:{SETTLING}:{turn}").shuffle(order)
        for position, treatment in enumerate(order, 1):
            predecessor = runs[-1].run if runs else ""
            name = f"s{turn:02d}-p{position:03d}"
            place = (turn - 1) * len(order) + position
            runs.append(PlannedRun(name, 0, place, treatment, predecessor, SETTLING))
    return runs


def _add_block(
    runs: list[PlannedRun],
    treatments: Sequence[Treatment],
    plan: Plan,
    block: int,
    controls: bool,
    kind: str = "",
) -> None:
    # One generator a block, so that adding blocks later never reorders the earlier ones.
    rng = random.Random(f"{plan.seed}:{block}")
    groups = _groups(treatments, plan.primary, rng, kind)
    if controls and treatments:
        group = [(treatments[0], control) for control in CONTROLS]
        rng.shuffle(group)
        groups.insert(rng.randint(0, len(groups)), group)
    order = [pair for group in groups for pair in group]
    for position, (treatment, control) in enumerate(order, 1):
        predecessor = runs[-1].run if runs else ""
        name = f"b{block:02d}-p{position:03d}"
        runs.append(PlannedRun(name, block, position, treatment, predecessor, control))


def _groups(
    treatments: Sequence[Treatment], primary: str, rng: random.Random, kind: str
) -> list[list[tuple[Treatment, str]]]:
    groups: dict[tuple[tuple[str, Level], ...], list[Treatment]] = {}
    for treatment in treatments:
        key = tuple(pair for pair in treatment.varied if pair[0] != primary)
        groups.setdefault(key, []).append(treatment)
    shuffled = list(groups.values())
    rng.shuffle(shuffled)
    for group in shuffled:
        rng.shuffle(group)
    return [[(treatment, kind) for treatment in group] for group in shuffled]
