"""Sentences on what the numbers of a comparison can and cannot show."""

from __future__ import annotations

import math

from wattwire.analysis.comparing.decision import Judged
from wattwire.analysis.comparing.notes import (
    Changes,
    EditedNote,
    ExcludedRuns,
    MarginNote,
    MarginSource,
    NoiseNote,
    Note,
    NotMeasured,
    Occasions,
    SharesNote,
    SideBySide,
    SideNoise,
    TwoLooks,
    UnchangedHead,
    Unmatched,
    UnpairedRuns,
    ValidityNote,
)
from wattwire.model.words import edited_words
from wattwire.report.words import validity
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "comparing_notes",
    {
        "margin_given": "The margin of {margin:margin} was given.",
        "margin_of_study": "The margin of {margin:margin} is the study's own.",
        "margin_default": ("The margin of {margin:margin} is the default; --margin gives another."),
        "no_losses": "No message was lost and no call failed in the runs compared.",
        "shares_one": (
            "Shares of messages lost and of calls failed are compared by their difference, with a "
            "margin of 1 percentage point."
        ),
        "shares": (
            "Shares of messages lost and of calls failed are compared by their difference, with a "
            "margin of {points:.4g} percentage points."
        ),
        # Variants of one campaign.
        "side_by_side": (
            "Measured side by side in {blocks:plural block} of one occasion: the result does not "
            "cover another boot or machine."
        ),
        "noise_unknown": (
            "Noise floor of {response}: unknown, there were no pairs of identical labels "
            "(plan.controls)."
        ),
        "noise": (
            "Noise floor of {response}: two identical labels may differ by up to {noise:percent} "
            "in the controls ({pairs} pairs); no effect of {noise:percent} or less is claimed."
        ),
        "two_looks": (
            "Two looks: comparisons that were worse after {first} blocks {again} Each look uses "
            "half the error (Bonferroni), so both together keep it."
        ),
        "looked_again": "were measured in {added} more; all their runs count.",
        "not_looked_again": "would have been measured again; there were none.",
        "unpaired": "Runs without their neighbour in the block, excluded from ratios: {runs}.",
        "not_measured": "{runs:plural planned run} not made.",
        "excluded": "{runs:plural run} excluded on evidence independent of their numbers.",
        "unchanged_head": (
            "{head} is identical to {base}: cells, kits and levels are the same, so the measured "
            "programs are unchanged."
        ),
        # Two campaigns.
        "occasions": (
            "Measured on {occasions}. The intervals cover the scatter of runs within each "
            "occasion, not other differences between the two (temperature, other load, memory "
            "layout). A difference is one between these two occasions; its cause is not proven. "
            "`wattwire run STUDY --variant base=… --variant head=…` measures both side by side."
        ),
        "boot_unknown": "two occasions (whether of one boot is not known)",
        "one_boot": "two occasions of one boot",
        "two_boots": "two boots",
        "noise_unknown_both": (
            "Noise floor of {response}: unknown, neither campaign has control runs (plan.controls)."
        ),
        "noise_both": (
            "Noise floor of {response}, the outer limit of the interval of two identical labels: "
            "{sides}. No effect of {noise:percent} or less is claimed."
        ),
        "side_noise": "up to {noise:percent} in {campaign} ({pairs} pairs)",
        "no_pairs": "{campaign} has no pair of identical labels",
        "changes_unknown": "The changes between the two are not recorded.",
        "no_changes": (
            "Cells, kits and agent are identical in both: the measured programs are unchanged."
        ),
        "changes": "Changed between the two: {changed:listed}.",
        "agent_changed": ("The agent performs the measurement and may cause part of a difference."),
        "unmatched": (
            "Skipped, because {counterpart} does not have it: {treatments}{more} of {campaign}."
        ),
        "more": " and {more} more",
        "not_measured_of": "{runs:plural planned run} of {campaign} not made.",
        "excluded_of": "Runs excluded on evidence independent of their numbers: {counts}.",
        "count": "{runs} of {campaign}",
        "of_campaign": "{campaign}: {note}",
    },
)

NAMED_MAX = 4
AGENT_BUILD = "agent build"


def notes(judged: Judged) -> list[Phrase]:
    """Return the notes of a comparison as sentences."""
    return [_note(note) for note in judged.notes]


def _note(note: Note) -> Phrase:
    match note:
        case MarginNote():
            return _margin(note)
        case SharesNote():
            return _shares(note)
        case NoiseNote():
            return _noise_of_variants(note) if len(note.sides) == 1 else _noise_of_two(note)
        case EditedNote():
            return _of_campaign(note.campaign, Phrase(edited_words(note.documents)))
        case ValidityNote():
            return _of_campaign(note.campaign, validity.sentence(note.notice))
        case NotMeasured(None, runs):
            return PHRASES("not_measured", runs=runs)
        case NotMeasured(campaign, runs):
            return PHRASES("not_measured_of", runs=runs, campaign=campaign)
        case ExcludedRuns(((None, runs),)):
            return PHRASES("excluded", runs=runs)
        case ExcludedRuns(counts):
            texts = [PHRASES("count", runs=runs, campaign=campaign) for campaign, runs in counts]
            return PHRASES("excluded_of", counts=joined(texts, ", "))
        case SideBySide(blocks):
            return PHRASES("side_by_side", blocks=blocks)
        case TwoLooks():
            return _two_looks(note)
        case UnpairedRuns(runs):
            return PHRASES("unpaired", runs=runs)
        case UnchangedHead(head, base):
            return PHRASES("unchanged_head", head=head, base=base)
        case Occasions():
            return PHRASES("occasions", occasions=_occasions(note))
        case Changes():
            return _changes(note)
        case Unmatched():
            return _unmatched(note)


def _of_campaign(campaign: str | None, note: Phrase) -> Phrase:
    return PHRASES("of_campaign", campaign=campaign, note=note) if campaign else note


def _margin(note: MarginNote) -> Phrase:
    if note.source is MarginSource.REQUEST:
        return PHRASES("margin_given", margin=note.margin)
    is_study = note.source is MarginSource.STUDY
    return PHRASES("margin_of_study" if is_study else "margin_default", margin=note.margin)


def _shares(note: SharesNote) -> Phrase:
    if note.margin is None:
        return PHRASES("no_losses")
    points = 100 * note.margin
    return PHRASES("shares_one") if f"{points:.4g}" == "1" else PHRASES("shares", points=points)


def _noise_of_variants(note: NoiseNote) -> Phrase:
    (side,) = note.sides
    if side.floor is None:
        return PHRASES("noise_unknown", response=note.response.title)
    noise = math.expm1(side.floor)
    return PHRASES("noise", response=note.response.title, noise=noise, pairs=side.pairs)


def _noise_of_two(note: NoiseNote) -> Phrase:
    floors = [side.floor for side in note.sides if side.floor is not None]
    if not floors:
        return PHRASES("noise_unknown_both", response=note.response.title)
    return PHRASES(
        "noise_both",
        response=note.response.title,
        sides=joined([_side_noise(side) for side in note.sides], "; "),
        noise=math.expm1(max(floors)),
    )


def _side_noise(side: SideNoise) -> Phrase:
    if side.floor is None:
        return PHRASES("no_pairs", campaign=side.campaign)
    noise = math.expm1(side.floor)
    return PHRASES("side_noise", noise=noise, campaign=side.campaign, pairs=side.pairs)


def _two_looks(note: TwoLooks) -> Phrase:
    again = PHRASES("not_looked_again")
    if note.added_blocks > 0:
        again = PHRASES("looked_again", added=note.added_blocks)
    return PHRASES("two_looks", first=note.first_blocks, again=again)


def _occasions(note: Occasions) -> Phrase:
    if note.same_boot is None:
        return PHRASES("boot_unknown")
    return PHRASES("one_boot" if note.same_boot else "two_boots")


def _changes(note: Changes) -> Phrase:
    if note.changed is None:
        return PHRASES("changes_unknown")
    if not note.changed:
        return PHRASES("no_changes")
    changes = PHRASES("changes", changed=note.changed)
    agent = PHRASES("agent_changed") if AGENT_BUILD in note.changed else Phrase()
    return joined([changes, agent])


def _unmatched(note: Unmatched) -> Phrase:
    more = len(note.treatments) - NAMED_MAX
    return PHRASES(
        "unmatched",
        counterpart=note.counterpart,
        treatments="; ".join(note.treatments[:NAMED_MAX]),
        more=PHRASES("more", more=more) if more > 0 else "",
        campaign=note.campaign,
    )
