"""Build the run table: blocks of all treatments in seeded random order.

The errors of runs that follow each other are dependent, because the machine drifts. Only a random
order of all runs of a block makes them exchangeable, so that every contrast has the error of its
own treatments (`docs/decisions/0023-random-order-in-blocks.md`). In a study with variants, the
variants of each treatment are next to each other, because the study compares these, and the drift
between neighbours is small (`docs/decisions/0024-variants-next-to-each-other.md`).

Each block also contains three control runs of one treatment, at random positions. Two of them
differ only in their label, so their difference is noise; they are next to each other if variants
are. In the third, the sampler is silent between marks, which shows the cost of sampling.

Runs that count system calls are in separate blocks after all other blocks, because counting slows a
run down, and a slow run must not be a neighbour of a timed run. So are runs that prove security,
in which uninvited nodes disturb the others. Runs that record layers are next to
the timed run of their treatment, because their cost is a ratio of neighbours. They do not separate
two variants; of three or more, that of an inner one separates it from one neighbour. The order of
the other runs is the same without them.

Settling runs precede the first block, in rounds that are numbered as block 0; those of a command
let caches and files warm up.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from wattwire.design.settling import piloted
from wattwire.model.study import PROFILED, PROOF, TRACED, Plan
from wattwire.model.treatment import Level, Treatment
from wattwire.model.variants import FACTOR as VARIANT
from wattwire.model.warm_up import SETTLING, SETTLING_RUNS

SAME, SAME_AGAIN, UNSAMPLED = "a", "b", "unsampled"
CONTROLS = (SAME, SAME_AGAIN, UNSAMPLED)


@dataclass(frozen=True)
class PlannedRun:
    """One planned run. `predecessor` is the id of the preceding run, or "".

    `control` is "" for a run of the design, or one of CONTROLS, TRACED, PROFILED, PROOF or
    SETTLING.
    """

    run: str
    block: int
    position: int
    treatment: Treatment
    predecessor: str
    control: str = ""

    def label(self) -> str:
        """Return the label of the treatment, with the kind of a settling or control run."""
        label = self.treatment.label()
        if self.control == SETTLING:
            return f"{label} (settling run)"
        return f"{label} (control {self.control})" if self.control else label


def make_plan(
    treatments: Sequence[Treatment],
    plan: Plan,
    settling_rounds: int = 0,
    profiled: Collection[str] = (),
    proved: Collection[str] = (),
) -> list[PlannedRun]:
    """Return all runs in order, which depends only on the seed.

    `profiled` has the keys of the treatments whose layers can be recorded, and `proved` those of
    the treatments whose security is proved.

    Blocks and positions are numbered from 1. If no settling runs determine a warm-up in calls, each
    treatment has `settling_rounds` of them.
    """
    runs = _settling_runs(piloted(treatments, plan), plan, SETTLING_RUNS)
    runs = runs or _settling_runs(treatments, plan, settling_rounds)
    for block in range(1, plan.blocks + 1):
        twins = profiled if block <= plan.layer_runs else ()
        _add_block(runs, treatments, plan, block, plan.controls, profiled=twins)
    for block in range(plan.blocks + 1, plan.blocks + plan.syscall_runs + 1):
        _add_block(runs, treatments, plan, block, controls=False, kind=TRACED)
    secured = [treatment for treatment in treatments if treatment.key in proved]
    first = plan.blocks + plan.syscall_runs + 1
    for block in range(first, first + plan.proof_runs) if secured else ():
        _add_block(runs, secured, plan, block, controls=False, kind=PROOF)
    return runs


def more_blocks(
    runs: Sequence[PlannedRun], treatments: Sequence[Treatment], plan: Plan
) -> list[PlannedRun]:
    """Return additional blocks of `treatments` to follow `runs`, as many as the plan has.

    They have no control runs, because the treatment of the control runs may not be in `treatments`.
    """
    all_runs = list(runs)
    first = max((run.block for run in runs), default=0) + 1
    for block in range(first, first + plan.blocks):
        _add_block(all_runs, treatments, plan, block, controls=False)
    return all_runs[len(runs) :]


def _settling_runs(treatments: Sequence[Treatment], plan: Plan, rounds: int) -> list[PlannedRun]:
    """Return rounds of all treatments in random order, so that drift affects all cells equally."""
    runs: list[PlannedRun] = []
    for round_number in range(1, rounds + 1) if treatments else ():
        order = list(treatments)
        random.Random(f"{plan.seed}:{SETTLING}:{round_number}").shuffle(order)
        for position, treatment in enumerate(order, 1):
            predecessor = runs[-1].run if runs else ""
            name = f"s{round_number:02d}-p{position:03d}"
            position_in_block = (round_number - 1) * len(order) + position
            runs.append(PlannedRun(name, 0, position_in_block, treatment, predecessor, SETTLING))
    return runs


def _add_block(
    runs: list[PlannedRun],
    treatments: Sequence[Treatment],
    plan: Plan,
    block: int,
    controls: bool,
    kind: str = "",
    profiled: Collection[str] = (),
) -> None:
    # Each block has a separate generator, so later blocks do not change the order of earlier
    # blocks.
    rng = random.Random(f"{plan.seed}:{block}")
    groups = [[(treatment, kind) for treatment in group] for group in _variants(treatments)]
    rng.shuffle(groups)
    are_grouped = any(len(group) > 1 for group in groups)
    if controls and treatments:
        kinds = [[SAME, SAME_AGAIN], [UNSAMPLED]] if are_grouped else [[k] for k in CONTROLS]
        for names in kinds:
            group = [(treatments[0], name) for name in names]
            groups.insert(rng.randint(0, len(groups)), group)
    for group in groups:
        rng.shuffle(group)
    if profiled:
        twins = random.Random(f"{plan.seed}:{block}:{PROFILED}")
        groups = [_with_twins(group, profiled, twins) for group in groups]
    order = [run for group in groups for run in group]
    for position, (treatment, control) in enumerate(order, 1):
        predecessor = runs[-1].run if runs else ""
        name = f"b{block:02d}-p{position:03d}"
        runs.append(PlannedRun(name, block, position, treatment, predecessor, control))


def _with_twins(
    group: Sequence[tuple[Treatment, str]], profiled: Collection[str], rng: random.Random
) -> list[tuple[Treatment, str]]:
    """Return a group with a profiled run next to each plain run whose layers can be recorded.

    Those of the first and the last run are at the ends, so two variants remain neighbours. That of
    an inner run is on a random side of it.
    """
    runs: list[tuple[Treatment, str]] = []
    for at, (treatment, control) in enumerate(group):
        pair = [(treatment, control)]
        if not control and treatment.key in profiled:
            is_inside = 0 < at < len(group) - 1 or len(group) == 1
            precedes = rng.random() < 0.5 if is_inside else at == 0
            pair.insert(0 if precedes else 1, (treatment, PROFILED))
        runs += pair
    return runs


def _variants(treatments: Sequence[Treatment]) -> list[list[Treatment]]:
    """Return the treatments in groups that differ only in their variant, in order."""
    groups: dict[tuple[tuple[str, Level], ...], list[Treatment]] = {}
    for treatment in treatments:
        rest = tuple(item for item in treatment.varied if item[0] != VARIANT)
        key = rest if len(rest) < len(treatment.varied) else treatment.levels
        groups.setdefault(key, []).append(treatment)
    return list(groups.values())
