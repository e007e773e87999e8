"""Pair the variants of a campaign by the runs of each block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from wattwire import stats
from wattwire.analysis.answering.baselines import planned_baseline
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.responses import Response
from wattwire.analysis.topics.comparison.decision import (
    UNCLEAR,
    WORSE,
    Estimate,
    WithinNoise,
)
from wattwire.analysis.topics.comparison.notes import (
    Named,
    NoiseNote,
    Note,
    SideBySide,
    TwoLooks,
    UnchangedHead,
    UnpairedRuns,
    edited_notes,
    run_notes,
    validity_notes,
)
from wattwire.analysis.topics.comparison.pairing import (
    Case,
    Runs,
    Sides,
    constant,
    figures_of_one,
    identity_of,
    treatment_key,
    treatments_of,
)
from wattwire.analysis.topics.comparison.requested import DEFAULTS
from wattwire.analysis.topics.comparison.result import PAIRED_BLOCKS, Comparison
from wattwire.analysis.topics.comparison.undelivered import difference_of_blocks
from wattwire.model.derived import FloatArray
from wattwire.model.errors import UsageError
from wattwire.model.variants import FACTOR

TESTS_OF_LOOKS = 3
"""Number of tests of a comparison with two looks: the first look, all runs, and the added runs."""


@dataclass(frozen=True)
class Variants:
    """The pairing of the variants of a campaign with the first variant: runs of the same block."""

    method: ClassVar[str] = PAIRED_BLOCKS
    lists_treatments: ClassVar[bool] = False
    across: ClassVar[None] = None

    evidence: Evidence
    base: str
    heads: tuple[str, ...]
    cases: tuple[Case, ...]

    @property
    def campaigns(self) -> tuple[Named, ...]:
        return ((None, self.evidence),)

    @property
    def added_cases(self) -> list[Case]:
        if self.evidence.study.answers.looks < 2:
            return []
        first_blocks = self.evidence.study.plan.blocks
        added = [
            replace(
                case,
                base=_after_block(case.base, first_blocks),
                head=_after_block(case.head, first_blocks),
            )
            for case in self.cases
        ]
        return [case for case in added if case.base.rows and case.head.rows]

    @property
    def default_responses(self) -> Sequence[str]:
        """The responses of the study's question about its variants."""
        names = [
            name
            for question in self.evidence.study.questions
            if question.factors == (FACTOR,)
            for name in question.responses
        ]
        return names or DEFAULTS

    @property
    def tests(self) -> int:
        looks = self.evidence.study.answers.looks
        return looks if looks < 2 else TESTS_OF_LOOKS

    def values(self, case: Case, response: Response) -> Sides:
        """Return the values of the blocks that have both, shape (blocks,) each."""
        base, head = (
            dict(zip(runs.blocks, runs.values(response), strict=True))
            for runs in (case.base, case.head)
        )
        pairs = [(base[block], head[block]) for block in base if block in head]
        pairs = [pair for pair in pairs if not np.isnan(pair).any()]
        return np.array([value for value, _ in pairs]), np.array([value for _, value in pairs])

    def counts(self, case: Case, values: Sides) -> tuple[int, int]:
        """Return the number of pairs on either side."""
        base, head = values
        return int(base.size), int(head.size)

    def ratios(self, values: Sequence[Sides], level: float) -> list[Estimate]:
        """Return the ratio of each case, with the error of `stats.block_intervals`."""
        reasons = [_why_no_ratio(*sides) for sides in values]
        logs = [
            np.log(head) - np.log(base)
            for (base, head), reason in zip(values, reasons, strict=True)
            if reason is None
        ]
        intervals = map(_exponential, stats.block_intervals(logs, level))
        return [reason or next(intervals) for reason in reasons]

    def difference(self, values: Sides, level: float) -> Estimate:
        return difference_of_blocks(*values, level)

    def by_ranks(self, values: Sides, level: float) -> Estimate | None:
        base, head = values
        return stats.paired_ratio_by_ranks(head, base, level) if base.size else None

    def notes(self, noises: Sequence[NoiseNote]) -> Iterator[Note]:
        evidence, looks = self.evidence, self.evidence.study.answers.looks
        yield SideBySide(evidence.usable["block"].n_unique() if evidence.usable.height else 0)
        yield from edited_notes(self.campaigns)
        yield from validity_notes(self.campaigns)
        yield from noises
        planned_blocks = len({entry["block"] for entry in evidence.designed})
        first_blocks = evidence.study.plan.blocks
        if looks > 1:
            yield TwoLooks(first_blocks, planned_blocks - first_blocks)
        unpaired = sum(len(set(case.base.blocks) ^ set(case.head.blocks)) for case in self.cases)
        if unpaired:
            yield UnpairedRuns(unpaired)
        yield from figures_of_one(self.base, self.cases)
        yield from run_notes(self.campaigns)
        yield from _unchanged_notes(evidence, self.base, self.heads)


def variants_of(evidence: Evidence) -> Variants:
    """Return the variants of a campaign, which are compared with the first.

    Raise UsageError if the campaign has no variants, or if no treatment has two variants.
    """
    names = [str(level) for level in evidence.factors.get(FACTOR, ())]
    if len(names) < 2:
        has_none = evidence.study.request is not None or evidence.imported
        advice = ", or measure with `run STUDY --variant base=… --variant head=…`"
        raise UsageError(
            f"{evidence.reader.path}: this campaign has no variants to compare. Name a "
            f"second campaign{'' if has_none else advice}."
        )
    base = str(planned_baseline(evidence, FACTOR))
    heads = tuple(name for name in names if name != base)
    cases = tuple(_cases(evidence, base, heads))
    if not cases:
        raise UsageError(
            f"{evidence.reader.path}: no treatment is planned for both {base} and another "
            "variant; plan.json lists skipped treatments with their reasons"
        )
    return Variants(evidence, base, heads, cases)


def _cases(evidence: Evidence, base: str, heads: Sequence[str]) -> Iterator[Case]:
    """Yield the pairs of base and head treatments that are equal in all other factors."""
    groups: dict[str, dict[str, Runs]] = {}
    other_factors = [name for name in evidence.factors if name != FACTOR]
    for runs in treatments_of(evidence).values():
        key = "; ".join(f"{name}={runs.levels.get(name)!r}" for name in other_factors)
        groups.setdefault(key, {})[str(runs.levels.get(FACTOR))] = runs
    for sides in groups.values():
        for head in heads:
            if base in sides and head in sides:
                title = evidence.treatment_title(sides[base].levels, without=(FACTOR,))
                title = title or "the only treatment"
                full_title = f"{title} ({head})" if len(heads) > 1 else title
                yield Case(full_title, title, head, sides[base], sides[head])


def _after_block(runs: Runs, last_block: int) -> Runs:
    kept = [pair for pair in zip(runs.rows, runs.blocks, strict=True) if pair[1] > last_block]
    return replace(
        runs, rows=tuple(row for row, _ in kept), blocks=tuple(block for _, block in kept)
    )


def _why_no_ratio(*sides: FloatArray) -> Estimate | None:
    values = np.concatenate(sides)
    if all(map(constant, sides)):
        return stats.NotComputable("no scatter, so the error is unknown")
    unbounded = int(np.isinf(values).sum())
    if unbounded:
        return stats.NotComputable(f"unbounded in {unbounded} of {values.size} runs (loss)")
    not_positive = int((values <= 0).sum())
    if not_positive:
        return stats.NotComputable(
            f"zero or negative in {not_positive} of {values.size} runs, so no ratio can be "
            "compared with the margin"
        )
    return None


def _exponential(estimate: Estimate) -> Estimate:
    if not isinstance(estimate, stats.Interval):
        return estimate
    with np.errstate(over="ignore"):  # with few, scattered runs, a limit may overflow to infinity
        centre, low, high = np.exp([estimate.estimate, estimate.low, estimate.high]).tolist()
    return replace(estimate, estimate=centre, low=low, high=high)


def suspect_keys(variants: Variants, comparison: Comparison) -> list[str]:
    """Return the plan keys of the treatments to measure again: each suspect head and its base.

    Suspect is what is worse, or what more blocks may decide.
    """
    undecided = [
        item for item in comparison.of(UNCLEAR) if isinstance(item.why, (str, WithinNoise))
    ]
    suspects = {(item.treatment, item.head) for item in (*comparison.of(WORSE), *undecided)}
    keys: dict[str, None] = {}
    for case in variants.cases:
        if (case.treatment, case.head_name) in suspects:
            for runs in (case.base, case.head):
                key = treatment_key(runs.levels)
                for entry in variants.evidence.designed:
                    if treatment_key({**entry["levels"], **entry["treatment"]}) == key:
                        keys[str(entry["treatment_key"])] = None
    return list(keys)


def _unchanged_notes(evidence: Evidence, base: str, heads: Sequence[str]) -> Iterator[Note]:
    """Yield a note for each head that has the same builds and levels as the base."""
    if evidence.study.request is not None:
        return  # wattwire does not know the program behind a command
    identity = identity_of(evidence.reader)
    levels = {name: variant.levels for name, variant in evidence.study.variants.items()}
    for head in heads:
        builds = [_builds(identity, name) for name in (base, head)]
        if identity and levels.get(base) == levels.get(head) and builds[0] == builds[1]:
            yield UnchangedHead(head, base)


def _builds(identity: Mapping[str, Any], variant: str) -> dict[str, Any]:
    """Return the builds that a variant uses, by cell: the variant's build, or the shared build."""
    prefix = f"cell {variant}: "
    own_builds = {
        key.removeprefix(prefix): build for key, build in identity.items() if key.startswith(prefix)
    }
    shared_builds = {
        key.removeprefix("cell "): build for key, build in identity.items() if ": " not in key
    }
    return {
        key: own_builds.get(key, shared_builds.get(key)) for key in {*own_builds, *shared_builds}
    }
