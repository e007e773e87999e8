"""Compare the variants of a campaign by the paired runs of each block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis.answering.baselines import planned_baseline
from wattwire.analysis.answering.confidence import CONFIDENCE
from wattwire.analysis.comparing.common import (
    DEFAULTS,
    Runs,
    Wanted,
    chosen_responses,
    constant,
    first_incomplete,
    identity_of,
    margin_of,
    noise_of,
    outcomes_of,
    side_noise,
    single_level,
    treatment_key,
    treatments_of,
    values_of,
    why_not_compared,
)
from wattwire.analysis.comparing.decision import (
    FROM_ZERO,
    NO_RATIO,
    UNCLEAR,
    WORSE,
    Cause,
    Estimate,
    Item,
    Judged,
    Method,
    WithinNoise,
    completion,
    judged,
)
from wattwire.analysis.comparing.notes import (
    EditedNote,
    ExcludedRuns,
    NoiseNote,
    Note,
    NotMeasured,
    SideBySide,
    TwoLooks,
    UnchangedHead,
    UnpairedRuns,
    ValidityNote,
)
from wattwire.analysis.comparing.other_placements import in_equal_placements, shares_of_runs
from wattwire.analysis.comparing.undelivered import (
    difference_of_blocks,
    from_zero,
    has_width,
    judged_share,
    means,
    noise_of_share,
    shares_note,
    to_compare,
)
from wattwire.analysis.dataset import CampaignReader, Evidence, gather
from wattwire.analysis.responses import Response
from wattwire.analysis.topics.validity.numbers import validity
from wattwire.model.cores import CORES, FREE
from wattwire.model.derived import FloatArray
from wattwire.model.errors import UsageError
from wattwire.model.variants import FACTOR

TESTS_OF_LOOKS = 3
"""Number of tests of a comparison with two looks: the first look, all runs, and the added runs."""


@dataclass(frozen=True)
class Pairing:
    """One treatment: its runs as the base and its runs as one of the heads."""

    title: str
    base_title: str
    head_name: str
    base: Runs
    head: Runs


def compare_variants(reader: CampaignReader, wanted: Wanted) -> Judged:
    """Compare the other variants of a campaign with the first variant; see `compare_inside`."""
    return compare_inside(gather(reader), wanted)


def compare_inside(evidence: Evidence, wanted: Wanted) -> Judged:
    """Compare the other variants with the first variant, by treatment, paired by block.

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
    pairings = _pairings(evidence, base, heads)
    if not pairings:
        raise UsageError(
            f"{evidence.reader.path}: no treatment is planned for both {base} and another "
            "variant; plan.json lists skipped treatments with their reasons"
        )
    requested = chosen_responses([evidence], wanted, _variant_responses(evidence) or DEFAULTS)
    responses = [response for response in requested if not response.share]
    all_runs = [runs for pairing in pairings for runs in (pairing.base, pairing.head)]
    shares = to_compare([(evidence, all_runs)], requested)
    looks = evidence.study.answers.looks
    tests = looks if looks < 2 else TESTS_OF_LOOKS
    margin_note = margin_of(wanted, [evidence])
    margin = margin_note.margin
    failures = sum(_any_failed(evidence, pairing) for pairing in pairings)
    estimates = [_estimates(evidence, pairings, response, CONFIDENCE) for response in responses]
    have_interval = [isinstance(estimate, stats.Interval) for row in estimates for estimate in row]
    without_ratio = [*shares, *(r for r, row in zip(responses, estimates, strict=True)
                                if any(estimate is FROM_ZERO for estimate in row))]  # fmt: skip
    differing = _intervals_of_differences(evidence, pairings, without_ratio)
    family = max(1, failures + sum(have_interval) + differing)
    level = single_level(family, tests, evidence)
    items: list[Item] = []
    added = _in_added_blocks(evidence, pairings) if looks > 1 else []
    for response in responses:
        of_all = _judged_ratios(evidence, base, pairings, response, level, margin)
        later = _judged_ratios(evidence, base, added, response, level, margin)
        items += _decided(of_all, later)
    for response in shares:
        noise = noise_of_share(evidence, response)
        share_items = [_share(evidence, base, pairing, response, level) for pairing in pairings]
        items += [judged_share(item, noise, margin) for item in share_items]
    items = in_equal_placements(items, _placements(evidence, pairings))
    for pairing in pairings:
        sides = (outcomes_of(evidence, pairing.base), outcomes_of(evidence, pairing.head))
        failed = first_incomplete((evidence, pairing.head), (evidence, pairing.base))
        items.append(
            completion(
                pairing.title, base, pairing.head_name, sides, level, failed, pairing.base_title
            )
        )
    notes = (
        margin_note,
        shares_note([(evidence, all_runs)], shares, margin),
        *_notes(evidence, pairings, responses, looks),
        *_unchanged_notes(evidence, base, heads),
    )
    return Judged(
        base, heads, tuple(items), margin, level, family, tests, Method.PAIRED_BLOCKS, notes
    )  # fmt: skip


def _placements(
    evidence: Evidence, pairings: Sequence[Pairing]
) -> dict[tuple[str, str], tuple[FloatArray, FloatArray]]:
    """Return where the nodes of both variants ran, by the treatment and the head of an item.

    Variants that differ in `cores` are meant to run in different placements.
    """
    base_shares = {p.base_title: shares_of_runs(evidence, p.base) for p in pairings}
    return {
        (pairing.title, pairing.head_name): (
            base_shares[pairing.base_title], shares_of_runs(evidence, pairing.head)
        )
        for pairing in pairings
        if pairing.base.levels.get(CORES, FREE) == pairing.head.levels.get(CORES, FREE)
    }  # fmt: skip


def _judged_ratios(
    evidence: Evidence,
    base: str,
    pairings: Sequence[Pairing],
    response: Response,
    level: float,
    margin: float,
) -> list[Item]:
    """Return the item of each pairing with its verdict."""
    ratios = _estimates(evidence, pairings, response, level)
    return [
        judged(_item(evidence, base, pairing, response, ratio, level), margin)
        for pairing, ratio in zip(pairings, ratios, strict=True)
    ]


def _in_added_blocks(evidence: Evidence, pairings: Sequence[Pairing]) -> list[Pairing]:
    """Return the pairings with only their runs of the second look, if they have such runs."""
    later = []
    for pairing in pairings:
        base, head = (
            _after_block(runs, evidence.study.plan.blocks) for runs in (pairing.base, pairing.head)
        )
        if base.rows and head.rows:
            later.append(replace(pairing, base=base, head=head))
    return later


def _after_block(runs: Runs, last_block: int) -> Runs:
    kept = [pair for pair in zip(runs.rows, runs.blocks, strict=True) if pair[1] > last_block]
    return replace(
        runs, rows=tuple(row for row, _ in kept), blocks=tuple(block for _, block in kept)
    )


def _decided(of_all: Sequence[Item], later: Sequence[Item]) -> list[Item]:
    """Return the items of all runs, or of the second look alone where only this look decides.

    The second look is an independent sample. Where load scattered the runs of the first look, it
    decides what all runs together cannot; its test has its own share of the error probability.
    """
    decided = {(item.treatment, item.head): item for item in later if item.verdict != UNCLEAR}
    return [
        decided.get((item.treatment, item.head), item) if item.verdict == UNCLEAR else item
        for item in of_all
    ]


def _variant_responses(evidence: Evidence) -> list[str]:
    """Return the responses of the study's question about its variants."""
    return [
        name
        for question in evidence.study.questions
        if question.factors == (FACTOR,)
        for name in question.responses
    ]


def suspects(judged_: Judged) -> set[tuple[str, str]]:
    """Return (treatment title, head) of each item that is worse, or that more blocks may decide."""
    undecided = [item for item in judged_.of(UNCLEAR) if isinstance(item.why, (Cause, WithinNoise))]
    return {(item.treatment, item.head) for item in (*judged_.of(WORSE), *undecided)}


def suspect_keys(reader: CampaignReader, judged_: Judged) -> list[str]:
    """Return the plan keys of the treatments to measure again: each suspect head and its base."""
    evidence = gather(reader)
    wanted = suspects(judged_)
    keys: dict[str, None] = {}
    for pairing in _pairings(evidence, judged_.base, judged_.heads):
        if (pairing.title, pairing.head_name) in wanted:
            for runs in (pairing.base, pairing.head):
                key = treatment_key(runs.levels)
                for entry in evidence.designed:
                    if treatment_key({**entry["levels"], **entry["treatment"]}) == key:
                        keys[str(entry["treatment_key"])] = None
    return list(keys)


def _pairings(evidence: Evidence, base: str, heads: Sequence[str]) -> list[Pairing]:
    """Return the pairs of base and head treatments that are equal in all other factors."""
    groups: dict[str, dict[str, Runs]] = {}
    other_factors = [name for name in evidence.factors if name != FACTOR]
    for runs in treatments_of(evidence).values():
        key = "; ".join(f"{name}={runs.levels.get(name)!r}" for name in other_factors)
        groups.setdefault(key, {})[str(runs.levels.get(FACTOR))] = runs
    pairings = []
    for sides in groups.values():
        for head in heads:
            if base in sides and head in sides:
                title = evidence.treatment_title(sides[base].levels, without=(FACTOR,))
                title = title or "the only treatment"
                full_title = f"{title} ({head})" if len(heads) > 1 else title
                pairings.append(Pairing(full_title, title, head, sides[base], sides[head]))
    return pairings


def _any_failed(evidence: Evidence, pairing: Pairing) -> bool:
    outcomes = outcomes_of(evidence, pairing.base) + outcomes_of(evidence, pairing.head)
    return any(outcome != "completed" for outcome in outcomes)


def _paired_values(
    evidence: Evidence, pairing: Pairing, response: Response
) -> tuple[FloatArray, FloatArray]:
    """Return base and head values of the blocks that have both, shape (blocks,) each."""
    base_by_block, head_by_block = (
        dict(zip(runs.blocks, values_of(evidence, runs, response), strict=True))
        for runs in (pairing.base, pairing.head)
    )
    blocks = [block for block in base_by_block if block in head_by_block]
    blocks = [
        block
        for block in blocks
        if not np.isnan([base_by_block[block], head_by_block[block]]).any()
    ]
    return np.array([base_by_block[block] for block in blocks]), np.array(
        [head_by_block[block] for block in blocks]
    )


def _estimates(
    evidence: Evidence, pairings: Sequence[Pairing], response: Response, level: float
) -> list[Estimate]:
    """Return the ratio of each pairing, with the error of `stats.block_intervals`."""
    values = [_paired_values(evidence, pairing, response) for pairing in pairings]
    refusals = [
        why_not_compared(evidence, (pairing.base, pairing.head), response)
        or _refusal(base, head, response)
        for pairing, (base, head) in zip(pairings, values, strict=True)
    ]
    computable = [index for index, refusal in enumerate(refusals) if refusal is None]
    logs = [np.log(values[index][1]) - np.log(values[index][0]) for index in computable]
    estimates: list[Estimate] = [refusal or stats.NotComputable("") for refusal in refusals]
    for index, estimate in zip(computable, stats.block_intervals(logs, level), strict=True):
        estimates[index] = (
            _exponential(estimate) if isinstance(estimate, stats.Interval) else estimate
        )
    return estimates


def _refusal(base: FloatArray, head: FloatArray, response: Response) -> Estimate | None:
    values = np.concatenate([base, head])
    if base.size and constant(base) and constant(head):
        return stats.NotComputable("no scatter, so the error is unknown")
    unbounded = int(np.isinf(values).sum())
    if unbounded:
        return stats.NotComputable(f"unbounded in {unbounded} of {values.size} runs (loss)")
    if from_zero(base, head):
        return FROM_ZERO
    not_positive = int((values <= 0).sum())
    if not_positive:
        return stats.NotComputable(
            f"zero or negative in {not_positive} of {values.size} runs, so no ratio can be "
            "compared with the margin"
        )
    return None


def _exponential(interval: stats.Interval) -> stats.Interval:
    with np.errstate(over="ignore"):  # with few, scattered runs, a limit may overflow to infinity
        centre, low, high = np.exp([interval.estimate, interval.low, interval.high]).tolist()
    return replace(interval, estimate=centre, low=low, high=high)


def _item(
    evidence: Evidence,
    base_name: str,
    pairing: Pairing,
    response: Response,
    ratio: Estimate,
    level: float,
) -> Item:
    base, head = _paired_values(evidence, pairing, response)
    is_from_zero, exact = ratio is FROM_ZERO, None
    ranks: Estimate | None = None
    refusal = why_not_compared(evidence, (pairing.base, pairing.head), response)
    if constant(base) and constant(head) and not refusal:
        exact = float(head[0] / base[0])
    if base.size and not refusal:
        ranks = stats.paired_ratio_by_ranks(head, base, level)
    return Item(
        pairing.title, response, base_name, pairing.head_name, ratio, ranks,
        int(base.size), int(head.size), noise_of(evidence, response), exact,
        values=means(base, head) if is_from_zero else None,
        difference=difference_of_blocks(base, head, level) if is_from_zero else None,
    )  # fmt: skip


def _share(
    evidence: Evidence, base_name: str, pairing: Pairing, response: Response, level: float
) -> Item:
    base, head = _paired_values(evidence, pairing, response)
    means = (float(base.mean()), float(head.mean())) if base.size else (np.nan, np.nan)
    return Item(
        pairing.title, response, base_name, pairing.head_name, NO_RATIO, None,
        int(base.size), int(head.size), shares=means,
        difference=difference_of_blocks(base, head, level),
    )  # fmt: skip


def _intervals_of_differences(
    evidence: Evidence, pairings: Sequence[Pairing], shares: Sequence[Response]
) -> int:
    """Return the number of differences whose interval has a nonzero width."""
    return sum(
        has_width(difference_of_blocks(*_paired_values(evidence, pairing, response), CONFIDENCE))
        for pairing in pairings
        for response in shares
    )


def _notes(
    evidence: Evidence, pairings: Sequence[Pairing], responses: Sequence[Response], looks: int
) -> Iterator[Note]:
    yield SideBySide(evidence.usable["block"].n_unique() if evidence.usable.height else 0)
    if evidence.edited:
        yield EditedNote(None, evidence.edited)
    for notice in validity(evidence).notices:
        yield ValidityNote(None, notice)
    for response in responses:
        yield NoiseNote(response, (side_noise(None, evidence, response),))
    planned_blocks = len({entry["block"] for entry in evidence.designed})
    first_blocks = evidence.study.plan.blocks
    if looks > 1:
        yield TwoLooks(first_blocks, planned_blocks - first_blocks)
    unpaired = sum(len(set(pairing.base.blocks) ^ set(pairing.head.blocks)) for pairing in pairings)
    if unpaired:
        yield UnpairedRuns(unpaired)
    untried = evidence.untried(evidence.designed)
    if untried:
        yield NotMeasured(None, untried)
    if evidence.excluded.height:
        yield ExcludedRuns(((None, evidence.excluded.height),))


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
