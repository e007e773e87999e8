"""Sentences of the headline on failed runs and on treatments without a comparable value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from wattwire.analysis import carried, not_compared
from wattwire.analysis.dataset import Evidence, all_levels, by_treatment
from wattwire.analysis.not_compared import Failed
from wattwire.analysis.offloading.emulated import DEVICE
from wattwire.analysis.responses import Response
from wattwire.model.deployment import without_send_time
from wattwire.model.derived import column
from wattwire.model.flows import flow_parts
from wattwire.model.treatment import Treatment
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "not_compared",
    {
        "failed": "{treatment} {outcomes:listed} of {runs:plural run}.",
        "several_failed": (
            "{treatments:plural treatment} {outcomes:listed} of {runs:plural run}; see “Counts, "
            "losses, starts”."
        ),
        "outcome": "{outcome} in {runs:count}",
        "left_out": (
            "{saturated:count} of {runs:plural run} did not keep up with the rate (saturated): "
            "{treatments:listed 3}. Ratios of latency and of cost leave them out and describe the "
            "other runs."
        ),
        "left_out_of": "{treatment} in {saturated:count} of {runs:count}",
        "only_treatment": "The only treatment",
        "emulated": (
            "In {runs:plural run}, the device was emulated ({devices:listed}). wattwire neither "
            "ranks nor tests their times and costs, because emulated time is not the device's time."
        ),
        "without_send_time": "No latency: {reason}.",
        "no_response": "No {response}: {reason}.",
        "excluded": "{reason}.",
        "lossy": (
            "Costs per message refer to sent messages, of which up to {share:percent} were lost "
            "({treatments:listed 3})."
        ),
        "more": "{more:plural further statement/further statements}: see the answers.",
    },
)

SENTENCES_MAX = 6
"""Maximum number of these sentences in the headline."""
NAMED_MAX = 3
"""Maximum number of treatments with the same outcomes that have a sentence each."""


def headline(evidence: Evidence, responses: Sequence[Response]) -> Phrase:
    """Return sentences on failed treatments, followed by sentences on missing values.

    `cautions` has the sentences on treatments that are compared nevertheless.
    """
    sentences = [*_failed_sentences(evidence), *_without_send_time(evidence)]
    for response in responses:
        too_few = not_compared.too_few_in_all(evidence, response)
        if too_few:
            sentences.append(PHRASES("no_response", response=response.title, reason=too_few))
        else:
            reasons = not_compared.excluded(evidence, response, with_saturated=False)
            sentences += [PHRASES("excluded", reason=reason) for reason in reasons]
    more = len(sentences) - SENTENCES_MAX
    return joined([*sentences[:SENTENCES_MAX], PHRASES("more", more=more) if more > 0 else ""])


def cautions(evidence: Evidence, responses: Sequence[Response]) -> Phrase:
    """Return sentences that qualify the ratios: runs that are left out, and lost messages."""
    return joined([_left_out(evidence), *_lossy(evidence, responses)])


def _left_out(evidence: Evidence) -> Phrase:
    """Return the number of saturated runs that are left out alone, with their treatments."""
    treatments = [failed for failed in not_compared.failed(evidence) if failed.saturated_minority]
    if not treatments:
        return Phrase()
    return PHRASES(
        "left_out",
        saturated=sum(failed.saturated_minority for failed in treatments),
        runs=evidence.usable.height,
        treatments=[
            PHRASES(
                "left_out_of",
                treatment=_title(evidence, failed),
                saturated=failed.saturated_minority,
                runs=failed.runs,
            )
            for failed in treatments
        ],
    )


def _lossy(evidence: Evidence, responses: Sequence[Response]) -> list[Phrase]:
    """Return a sentence if a cost per message is compared and messages without reply were lost.

    The cost of a call whose reply was lost is not compared at all (`not_compared.FAILED_MAX`).
    """
    if not any(carried.COST.fullmatch(response.column) for response in responses):
        return []
    shares = {}
    for key, frame in by_treatment(evidence, evidence.usable).items():
        share = float(np.nanmax(np.nan_to_num(column(frame, "loss_share")), initial=0.0))
        if share > not_compared.FAILED_MAX:
            levels = dict(zip(evidence.varied, key, strict=True))
            shares[evidence.treatment_title(levels) or "the only treatment"] = share
    if not shares:
        return []
    return [PHRASES("lossy", share=max(shares.values()), treatments=list(shares))]


def _without_send_time(evidence: Evidence) -> list[Phrase]:
    """Return a sentence for each kind of message that is too short for its send time."""
    if evidence.imported:  # Its columns may have the names of levels, but no node sent a message.
        return []
    treatments = (
        Treatment.of({}, all_levels(evidence.runs[group["run"][0]]))
        for group in by_treatment(evidence, evidence.usable).values()
    )
    parts = (part.treatment for treatment in treatments for part in flow_parts(treatment))
    reasons = dict.fromkeys(filter(None, map(without_send_time, parts)))
    return [PHRASES("without_send_time", reason=reason) for reason in reasons]


def emulated(evidence: Evidence) -> Phrase:
    """Return a sentence on runs with emulated devices; empty without any."""
    runs = evidence.emulated.height
    if not runs:
        return Phrase()
    devices = dict.fromkeys(evidence.emulated[DEVICE].to_list())
    return PHRASES("emulated", runs=runs, devices=list(devices))


def _failed_sentences(evidence: Evidence) -> list[Phrase]:
    """Return a sentence per treatment with failed runs, or one for many with the same outcomes."""
    by_outcomes: dict[tuple[str, ...], list[Failed]] = {}
    for failed in not_compared.failed(evidence):
        if failed.saturated_minority:
            continue
        names = tuple(outcome for outcome, _ in failed.outcomes)
        by_outcomes.setdefault(names, []).append(failed)
    sentences = []
    for members in by_outcomes.values():
        if len(members) > NAMED_MAX:
            sentences.append(_several_failed_sentence(members))
        else:
            sentences += [_failed_sentence(evidence, failed) for failed in members]
    return sentences


def _several_failed_sentence(members: Sequence[Failed]) -> Phrase:
    """Return a sentence such as "15 treatments saturated in 15 of 15 runs."."""
    runs_by_outcome: Counter[str] = Counter()
    for failed in members:
        runs_by_outcome.update(dict(failed.outcomes))
    return PHRASES(
        "several_failed",
        treatments=len(members),
        outcomes=[_outcome(*counted) for counted in runs_by_outcome.items()],
        runs=sum(failed.runs for failed in members),
    )


def _failed_sentence(evidence: Evidence, failed: Failed) -> Phrase:
    """Return a sentence such as "CELL died in 4 of 4 runs."."""
    return PHRASES(
        "failed",
        treatment=_title(evidence, failed),
        outcomes=[_outcome(*counted) for counted in failed.outcomes],
        runs=failed.runs,
    )


def _title(evidence: Evidence, failed: Failed) -> str | Phrase:
    title = " ".join(evidence.title(*item) for item in failed.levels.items())
    return title or PHRASES("only_treatment")


def _outcome(outcome: str, runs: int) -> Phrase:
    return PHRASES("outcome", outcome=outcome.replace("_", " "), runs=runs)
