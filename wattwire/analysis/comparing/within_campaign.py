"""Variants of one campaign compared inside its blocks, where they stand next to each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis.comparing.common import (
    DEFAULTS,
    Runs,
    Wanted,
    chosen_responses,
    constant,
    first_reason,
    margin_of,
    noise_of,
    noise_words,
    outcomes_of,
    single_level,
    treatment_key,
    treatments_of,
    values_of,
)
from wattwire.analysis.comparing.decision import (
    NO_RATIO,
    WORSE,
    Estimate,
    Item,
    Judged,
    completion,
    judged,
)
from wattwire.analysis.comparing.undelivered import (
    difference_of_blocks,
    has_width,
    judged_share,
    noise_of_share,
    notes,
    to_compare,
)
from wattwire.analysis.contrasts import planned_baseline
from wattwire.analysis.dataset import CampaignReader, Evidence, gather
from wattwire.analysis.responses import Response
from wattwire.analysis.validity import stamps
from wattwire.model import words
from wattwire.model.derived import FloatArray
from wattwire.model.errors import UsageError
from wattwire.model.variants import FACTOR
from wattwire.model.words import edited_words

METHOD = (
    "t interval on the log ratios of neighbours, one a block, their error pooled over treatments "
    "unless these scatter differently"
)


@dataclass(frozen=True)
class Pairing:
    """One treatment with its runs as base and as one of the heads."""

    title: str
    head_name: str
    base: Runs
    head: Runs


def compare_variants(
    reader: CampaignReader, wanted: Wanted, identity: Mapping[str, Any] | None = None
) -> Judged:
    """Every other variant of a campaign against the first; see `compare_inside`."""
    return compare_inside(gather(reader), wanted, identity)


def compare_inside(
    evidence: Evidence, wanted: Wanted, identity: Mapping[str, Any] | None = None
) -> Judged:
    """Every other variant against the first, treatment by treatment, paired by block.

    `identity` is the journal's word on what each variant's cells were built from.

    Raises UsageError where the campaign has no variants, or no treatment with two of them.
    """
    names = [str(level) for level in evidence.factors.get(FACTOR, ())]
    if len(names) < 2:
        raise UsageError(
            f"{evidence.reader.path}: this campaign has no variants to compare with each other. "
            "Give a second campaign, or measure with `run STUDY --variant base=… --variant head=…`."
        )
    base = str(planned_baseline(evidence, FACTOR))
    heads = tuple(name for name in names if name != base)
    pairings = _pairings(evidence, base, heads)
    if not pairings:
        raise UsageError(
            f"{evidence.reader.path}: no treatment was planned as {base} and as another variant "
            "too; see plan.json for what was skipped and why"
        )
    asked = chosen_responses([evidence], wanted, _asked(evidence) or DEFAULTS)
    responses = [response for response in asked if not response.share]
    measured = [runs for pairing in pairings for runs in (pairing.base, pairing.head)]
    shares = to_compare([(evidence, measured)], asked)
    looks = int(evidence.study.get("answers", {}).get("looks", 1))
    margin, margin_note = margin_of(wanted, [evidence])
    failed = sum(_any_failed(evidence, pairing) for pairing in pairings)
    counted = [_estimates(evidence, pairings, response, 0.95) for response in responses]
    intervals = [isinstance(one, stats.Interval) for row in counted for one in row]
    family = max(1, failed + sum(intervals) + _share_intervals(evidence, pairings, shares))
    level = single_level(family, looks)
    items: list[Item] = []
    for response in responses:
        found = _estimates(evidence, pairings, response, level)
        for pairing, ratio in zip(pairings, found, strict=True):
            items.append(judged(_item(evidence, base, pairing, response, ratio, level), margin))
    for response in shares:
        noise = noise_of_share(evidence, response)
        found_of = [_share(evidence, base, pairing, response, level) for pairing in pairings]
        items += [judged_share(item, noise, margin) for item in found_of]
    for pairing in pairings:
        sides = (outcomes_of(evidence, pairing.base), outcomes_of(evidence, pairing.head))
        why = first_reason((evidence, pairing.head), (evidence, pairing.base))
        items.append(completion(pairing.title, base, pairing.head_name, sides, level, why))
    told = [margin_note, *notes(shares, margin), *_notes(evidence, pairings, responses, looks)]
    told += _the_same(evidence, base, heads, identity or {})
    return Judged(
        base, heads, tuple(items), margin, level, family, looks, METHOD, tuple(told)
    )  # fmt: skip


def _asked(evidence: Evidence) -> list[str]:
    """The responses that the study's own question about its variants asks for."""
    return [
        name
        for question in evidence.study.get("question", [])
        if question.get("factors") == [FACTOR]
        for name in question.get("responses", [])
    ]


def suspects(judged_: Judged) -> set[tuple[str, str]]:
    """(treatment's title, head) of everything that came out worse."""
    return {(item.treatment, item.head) for item in judged_.of(WORSE)}


def suspect_keys(reader: CampaignReader, judged_: Judged) -> list[str]:
    """Keys in the plan of the treatments to be measured again: each suspect head and its base."""
    evidence = gather(reader)
    wanted = suspects(judged_)
    found: dict[str, None] = {}
    for pairing in _pairings(evidence, judged_.base, judged_.heads):
        if (pairing.title, pairing.head_name) in wanted:
            for runs in (pairing.base, pairing.head):
                key = treatment_key(runs.levels)
                for entry in evidence.designed:
                    if treatment_key({**entry["levels"], **entry["treatment"]}) == key:
                        found[str(entry["treatment_key"])] = None
    return list(found)


def _pairings(evidence: Evidence, base: str, heads: Sequence[str]) -> list[Pairing]:
    """Treatments that were planned as base and as a head; the other factors make them one."""
    groups: dict[str, dict[str, Runs]] = {}
    others = [name for name in evidence.factors if name != FACTOR]
    for runs in treatments_of(evidence).values():
        key = "; ".join(f"{name}={runs.levels.get(name)!r}" for name in others)
        groups.setdefault(key, {})[str(runs.levels.get(FACTOR))] = runs
    found = []
    for sides in groups.values():
        for head in heads:
            if base in sides and head in sides:
                title = evidence.treatment_title(sides[base].levels, without=(FACTOR,))
                title = title or "the only treatment"
                titled = f"{title} ({head})" if len(heads) > 1 else title
                found.append(Pairing(titled, head, sides[base], sides[head]))
    return found


def _any_failed(evidence: Evidence, pairing: Pairing) -> bool:
    outcomes = outcomes_of(evidence, pairing.base) + outcomes_of(evidence, pairing.head)
    return any(outcome != "completed" for outcome in outcomes)


def _paired(
    evidence: Evidence, pairing: Pairing, response: Response
) -> tuple[FloatArray, FloatArray]:
    """Base's and head's values of the blocks that hold both, shape (blocks,) each."""
    base, head = (
        dict(zip(runs.blocks, values_of(evidence, runs, response), strict=True))
        for runs in (pairing.base, pairing.head)
    )
    both = [block for block in base if block in head]
    both = [block for block in both if not np.isnan([base[block], head[block]]).any()]
    return np.array([base[block] for block in both]), np.array([head[block] for block in both])


def _estimates(
    evidence: Evidence, pairings: Sequence[Pairing], response: Response, level: float
) -> list[Estimate]:
    """The ratio of each pairing, their errors pooled where they scatter alike."""
    paired = [_paired(evidence, pairing, response) for pairing in pairings]
    refused = [_refused(base, head, response) for base, head in paired]
    sound = [at for at, why in enumerate(refused) if why is None]
    logs = [np.log(paired[at][1]) - np.log(paired[at][0]) for at in sound]
    found: list[Estimate] = [why or stats.NotComputable("") for why in refused]
    for at, one in zip(sound, stats.block_intervals(logs, level), strict=True):
        found[at] = _exponential(one) if isinstance(one, stats.Interval) else one
    return found


def _refused(base: FloatArray, head: FloatArray, response: Response) -> Estimate | None:
    both = np.concatenate([base, head])
    if base.size and constant(base) and constant(head):
        return stats.NotComputable("no scatter at all: no error to judge by")
    unbounded = int(np.isinf(both).sum())
    if unbounded:
        return stats.NotComputable(f"unbounded in {unbounded} of {both.size} runs (loss)")
    bad = int((both <= 0).sum())
    if bad:
        return stats.NotComputable(
            f"zero or negative in {bad} of {both.size} runs: no ratio to hold against the margin"
        )
    return None


def _exponential(found: stats.Interval) -> stats.Interval:
    with np.errstate(over="ignore"):  # few, scattered runs: a limit may lie beyond all numbers
        centre, low, high = np.exp([found.estimate, found.low, found.high]).tolist()
    return replace(found, estimate=centre, low=low, high=high)


def _item(
    evidence: Evidence,
    base_name: str,
    pairing: Pairing,
    response: Response,
    ratio: Estimate,
    level: float,
) -> Item:
    base, head = _paired(evidence, pairing, response)
    exact = None
    if constant(base) and constant(head):
        exact = float(head[0] / base[0])
    ranks: Estimate | None = None
    if base.size:
        ranks = stats.paired_ratio_by_ranks(head, base, level)
    return Item(
        pairing.title, response, base_name, pairing.head_name, ratio, ranks,
        int(base.size), int(head.size), noise_of(evidence, response), exact,
    )  # fmt: skip


def _share(
    evidence: Evidence, base_name: str, pairing: Pairing, response: Response, level: float
) -> Item:
    base, head = _paired(evidence, pairing, response)
    means = (float(base.mean()), float(head.mean())) if base.size else (np.nan, np.nan)
    return Item(
        pairing.title, response, base_name, pairing.head_name, NO_RATIO, None,
        int(base.size), int(head.size), shares=means,
        difference=difference_of_blocks(base, head, level),
    )  # fmt: skip


def _share_intervals(
    evidence: Evidence, pairings: Sequence[Pairing], shares: Sequence[Response]
) -> int:
    """How many of the shares' differences have an interval that may miss."""
    return sum(
        has_width(difference_of_blocks(*_paired(evidence, pairing, response), 0.95))
        for pairing in pairings
        for response in shares
    )


def _notes(
    evidence: Evidence, pairings: Sequence[Pairing], responses: Sequence[Response], looks: int
) -> list[str]:
    blocks = evidence.usable["block"].n_unique() if evidence.usable.height else 0
    told = [
        f"Measured side by side in {words.plural(blocks, 'block')} of one occasion: nothing here "
        "speaks for another boot or machine."
    ]
    if evidence.edited:
        told.append(edited_words(evidence.edited))
    told += stamps(evidence)
    for response in responses:
        told.append(f"Noise floor of {response.title}: {_noise(evidence, response)}")
    planned = {entry["block"] for entry in evidence.designed}
    first = evidence.study.get("plan", {}).get("blocks")
    if looks > 1:
        again = len(planned) - int(first) if first else 0
        told.append(
            f"Two looks: whatever was worse after {first} blocks "
            + (f"was measured in {again} more; all its runs count." if again > 0 else
               "would have been measured again; nothing was.")
            + " Each look is at half the error (Bonferroni), so that both together keep it."
        )  # fmt: skip
    unpaired = sum(len(set(one.base.blocks) ^ set(one.head.blocks)) for one in pairings)
    if unpaired:
        told.append(f"Runs without their neighbour in the block, left out of ratios: {unpaired}.")
    untried = evidence.untried(evidence.designed)
    if untried:
        told.append(f"{words.plural(untried, 'planned run')} not made.")
    if evidence.set_aside.height:
        told.append(
            f"{words.plural(evidence.set_aside.height, 'run')} set aside on evidence independent "
            "of their numbers."
        )
    return told


def _the_same(
    evidence: Evidence, base: str, heads: Sequence[str], identity: Mapping[str, Any]
) -> Iterator[str]:
    """Heads that are the base again: the same bytes built, the same levels held."""
    levels = {
        name: table.get("levels", {}) for name, table in evidence.study.get("variants", {}).items()
    }
    for head in heads:
        builds = [_builds(identity, name) for name in (base, head)]
        if identity and levels.get(base) == levels.get(head) and builds[0] == builds[1]:
            yield (
                f"{head} is {base} again: cells, kits and levels are the same, so that nothing "
                "was changed that is measured."
            )


def _builds(identity: Mapping[str, Any], variant: str) -> dict[str, Any]:
    """What a variant's own cells were built from, by cell; those that it shares are left out."""
    mark = f"cell {variant}: "
    own = {key.removeprefix(mark): of for key, of in identity.items() if key.startswith(mark)}
    shared = {key.removeprefix("cell "): of for key, of in identity.items() if ": " not in key}
    return {key: own.get(key, shared.get(key)) for key in {*own, *shared}}


def _noise(evidence: Evidence, response: Response) -> str:
    found = noise_of(evidence, response)
    if found is None:
        return "not known, there were no pairs of identical labels (plan.controls)."
    percent = f"{100 * np.expm1(found):.2g} %"
    return (
        f"two identical labels may differ by {noise_words('the controls', evidence, response)}; "
        f"no effect of {percent} or less is claimed."
    )
