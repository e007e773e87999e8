"""Compare heads with a base: two campaigns, or the variants of one.

`compare` is the same for both. Only its pairing differs: the runs of two variants in one block are
a pair (`variants.py`), those of two campaigns are not paired (`two_campaigns.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from wattwire import stats
from wattwire.analysis.answering.confidence import CONFIDENCE
from wattwire.analysis.carried import why_not as carried_why_not
from wattwire.analysis.carried import why_void
from wattwire.analysis.dataset import Evidence, judges_variants
from wattwire.analysis.responses import Response
from wattwire.analysis.topics.comparison.decision import (
    FROM_ZERO,
    NO_RATIO,
    UNCLEAR,
    Estimate,
    Incomplete,
    Item,
    completion,
    judged,
    judged_share,
)
from wattwire.analysis.topics.comparison.notes import NoiseNote, noise_note
from wattwire.analysis.topics.comparison.other_placements import in_equal_placements
from wattwire.analysis.topics.comparison.pairing import (
    Case,
    Pairing,
    Runs,
    Sides,
    by_campaign,
    constant,
)
from wattwire.analysis.topics.comparison.requested import (
    Wanted,
    chosen_responses,
    margin_of,
    single_level,
)
from wattwire.analysis.topics.comparison.result import (
    PAIRED_BLOCKS,
    ComparedVariants,
    Comparison,
)
from wattwire.analysis.topics.comparison.undelivered import (
    from_zero,
    has_width,
    shares_note,
    to_compare,
)
from wattwire.analysis.topics.comparison.variants import variants_of
from wattwire.model.errors import UsageError
from wattwire.model.variants import FACTOR
from wattwire.model.verdict import Outcome


def compare(pairing: Pairing, wanted: Wanted) -> Comparison:
    """Compare each head's runs with the base's runs, by treatment.

    Raise UsageError if no campaign has a requested response.
    """
    evidences = [evidence for _, evidence in pairing.campaigns]
    requested = chosen_responses(evidences, wanted, pairing.default_responses)
    responses = [response for response in requested if not response.share]
    runs = by_campaign(pairing.cases)
    shares = to_compare(runs, requested)
    margin_note = margin_of(wanted, evidences)
    margin = margin_note.margin
    family = max(1, _family(pairing, responses, shares))
    level = single_level(family, pairing.tests, *evidences)
    noises = {
        response: noise_note(pairing.campaigns, response) for response in (*responses, *shares)
    }
    by_response = [
        _with_ratio(pairing, response, level, margin, noises[response]) for response in responses
    ]
    rows = zip(*by_response, strict=True) if pairing.lists_treatments else by_response
    items = [
        *chain.from_iterable(rows),
        *(
            item
            for share in shares
            for item in _of_share(pairing, share, level, margin, noises[share])
        ),
    ]
    completions = [
        completion(
            case.treatment, pairing.base, case.head_name,
            (case.base.outcomes, case.head.outcomes), level,
            _first_incomplete(case.head, case.base), case.base_treatment,
        )
        for case in pairing.cases
    ]  # fmt: skip
    return Comparison(
        pairing.base,
        pairing.heads,
        (*in_equal_placements(items, pairing.cases), *completions),
        margin,
        level,
        family,
        pairing.tests,
        pairing.method,
        (
            margin_note,
            shares_note(runs, shares, margin),
            *pairing.notes([noises[response] for response in responses]),
        ),
        pairing.across,
    )


def compared_variants(evidence: Evidence) -> ComparedVariants:
    """Compare the study's variants by the rules of the study, which the page states."""
    if not judges_variants(evidence):
        return ComparedVariants()
    try:
        return ComparedVariants(compare(variants_of(evidence), Wanted()))
    except UsageError as error:
        return ComparedVariants(reason=str(error))


def _family(pairing: Pairing, responses: Sequence[Response], shares: Sequence[Response]) -> int:
    """Return the number of simultaneous intervals and tests of completed runs.

    An interval without a width is exact and needs no correction.
    """
    of_failures = sum(case.any_failed for case in pairing.cases)
    estimates = [_ratios(pairing, pairing.cases, response, CONFIDENCE) for response in responses]
    of_ratios = sum(isinstance(ratio, stats.Interval) for row in estimates for ratio in row)
    without_ratio = [(case, share) for share in shares for case in pairing.cases]
    for response, ratios in zip(responses, estimates, strict=True):
        # Among variants, a zero in one treatment counts for all treatments, which is conservative.
        counts_all = pairing.method == PAIRED_BLOCKS and FROM_ZERO in ratios
        without_ratio += [
            (case, response)
            for case, ratio in zip(pairing.cases, ratios, strict=True)
            if counts_all or ratio is FROM_ZERO
        ]
    differences = [
        pairing.difference(pairing.values(case, response), CONFIDENCE)
        for case, response in without_ratio
    ]
    return of_failures + of_ratios + sum(map(has_width, differences))


def _with_ratio(
    pairing: Pairing, response: Response, level: float, margin: float, noise: NoiseNote
) -> list[Item]:
    """Return the item of each case with its verdict: of all runs, or of the second look alone.

    The second look is an independent sample. Where load scattered the runs of the first look, it
    decides what all runs together cannot; its test has its own share of the error probability.
    """
    all_runs, added_runs = (
        [judged(item, margin) for item in _items(pairing, cases, response, level, noise)]
        for cases in (pairing.cases, pairing.added_cases)
    )
    decided = {(item.treatment, item.head): item for item in added_runs if item.verdict != UNCLEAR}
    return [
        decided.get((item.treatment, item.head), item) if item.verdict == UNCLEAR else item
        for item in all_runs
    ]


def _items(
    pairing: Pairing, cases: Sequence[Case], response: Response, level: float, noise: NoiseNote
) -> Iterator[Item]:
    """Yield the item of each case without a verdict."""
    for case, ratio in zip(cases, _ratios(pairing, cases, response, level), strict=True):
        values = pairing.values(case, response)
        item = replace(_item(pairing, case, response, values), ratio=ratio, noise=noise.floor)
        if _why_not_compared(case, response):
            yield item
            continue
        base, head = values
        item = replace(item, by_ranks=pairing.by_ranks(values, level))
        if ratio is FROM_ZERO:
            difference = pairing.difference(values, level)
            item = replace(item, values=_means(values), difference=difference)
        elif constant(base) and constant(head):
            item = replace(item, exact=float(head[0] / base[0]))
        yield item


def _of_share(
    pairing: Pairing, share: Response, level: float, margin: float, noise: NoiseNote
) -> Iterator[Item]:
    """Yield the item of each case with its verdict on a share of losses or failures."""
    for case in pairing.cases:
        values = pairing.values(case, share)
        difference = pairing.difference(values, level)
        item = _item(pairing, case, share, values)
        item = replace(item, shares=_means(values), difference=difference)
        yield judged_share(item, noise.floor, margin)


def _item(pairing: Pairing, case: Case, response: Response, values: Sides) -> Item:
    base_runs, head_runs = pairing.counts(case, values)
    return Item(
        case.treatment, response, pairing.base, case.head_name, NO_RATIO,
        base_runs=base_runs, head_runs=head_runs,
    )  # fmt: skip


def _ratios(
    pairing: Pairing, cases: Sequence[Case], response: Response, level: float
) -> list[Estimate]:
    """Return the ratio of each case, or the reason why there is none."""
    values = [pairing.values(case, response) for case in cases]
    reasons = [
        _why_not_compared(case, response) or (FROM_ZERO if from_zero(*sides) else None)
        for case, sides in zip(cases, values, strict=True)
    ]
    compared = [sides for sides, reason in zip(values, reasons, strict=True) if reason is None]
    ratios = iter(pairing.ratios(compared, level))
    return [reason or next(ratios) for reason in reasons]


def _why_not_compared(case: Case, response: Response) -> stats.TooFew | stats.NotComputable | None:
    """Return the reason why the response of a case is not compared, else None."""
    reasons = (_why_not(runs, response) for runs in by_campaign([case]))
    return next((reason for reason in reasons if reason), None)


def _why_not(runs: Sequence[Runs], response: Response) -> stats.TooFew | stats.NotComputable | None:
    """Return the reason why the response of these runs of a campaign is not compared, else None.

    A run is saturated, or has too few messages for a percentile, or all runs of a treatment died,
    or none has a value, as of a program that stopped printing its figure: more blocks add none.
    """
    for of_treatment in runs:
        if set(of_treatment.outcomes) == {Outcome.DIED.value}:
            return stats.NotComputable("every run of one side failed")
    rows = [row for of_treatment in runs for row in of_treatment.rows]
    if not rows:
        return None
    frame = runs[0].evidence.usable[rows]
    if reason := why_void(frame, response.column) or carried_why_not(frame, response.column):
        return reason
    for of_treatment in runs:
        if of_treatment.rows and np.isnan(of_treatment.values(response)).all():
            name = of_treatment.levels.get(FACTOR)
            return stats.NotComputable(f"no run{f' of {name}' if name else ''} has a value")
    return None


def _first_incomplete(*sides: Runs) -> Incomplete | None:
    """Return the first run that did not complete; None if all completed."""
    for runs in sides:
        names = runs.evidence.usable["run"].to_list()
        for row in runs.rows:
            document = runs.evidence.runs.get(names[row], {})
            if document.get("outcome", "completed") != "completed":
                detail = document.get("outcome_detail")
                return Incomplete(str(document["outcome"]), str(detail or ""))
    return None


def _means(values: Sides) -> tuple[float, float]:
    """Return the mean of each side; NaN for a side without values."""
    base, head = (float(side.mean()) if side.size else np.nan for side in values)
    return base, head
