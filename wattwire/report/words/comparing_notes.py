"""Sentences on the limitations of a comparison."""

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
from wattwire.report.topic_page import Sentences
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "comparing_notes",
    {
        "margin_given": "The requested margin is {margin:margin}.",
        "margin_of_study": "The study specifies a margin of {margin:margin}.",
        "margin_default": (
            "The margin of {margin:margin} is the default. Use --margin to change it."
        ),
        "no_losses": "{absent:capital} in the compared runs.",
        "none_lost": "no message was lost",
        "none_failed": "no call failed",
        "losses_unknown": (
            "The comparison does not include lost messages and failed calls, because the runs have "
            "no record of them."
        ),
        "shares_one": (
            "Shares of lost messages and of failed calls are compared by their difference, "
            "with a margin of 1 percentage point."
        ),
        "shares": (
            "Shares of lost messages and of failed calls are compared by their difference, "
            "with a margin of {points:.4g} percentage points."
        ),
        # Variants of one campaign.
        "side_by_side": (
            "The variants were measured side by side in {blocks:plural block} on one "
            "occasion. The result does not extend to other boots or machines."
        ),
        "noise_unknown": (
            "The noise floor of {response} is unknown, because no treatment was measured under two "
            "labels (plan.controls)."
        ),
        "noise": (
            "Noise floor of {response}: in the controls, the results of one treatment under two "
            "labels may differ by up to {noise:percent} ({pairs:plural pair}). No effect of "
            "{noise:percent} or less is claimed."
        ),
        "two_looks": (
            "Comparisons that were worse or undecided after {first:plural block} {again} Each of "
            "the three tests (the first blocks, all blocks, the added blocks) uses a third of the "
            "error probability (Bonferroni)."
        ),
        "looked_again": (
            "were measured in {added:plural more block}. The results include all of their runs. "
            "If these cannot tell, the added blocks decide alone."
        ),
        "not_looked_again": "would have been measured again, but there were none.",
        "unpaired": (
            "{runs:plural run has/runs have} no partner in the block; the ratios exclude such runs."
        ),
        "not_measured": ("{runs:plural planned run was/planned runs were} not executed."),
        "excluded": (
            "{runs:plural run was/runs were} excluded on evidence independent of the measured "
            "values."
        ),
        "unchanged_head": (
            "{head} and {base} have the same cells, kits and levels, so the measured programs "
            "are unchanged."
        ),
        # Two campaigns.
        "occasions": (
            "The two campaigns were measured on {occasions}. The intervals cover the scatter "
            "of runs within each occasion, but not other differences between the occasions "
            "(temperature, other load, memory layout), so the cause of a difference is not "
            "proven.{advice}"
        ),
        "side_by_side_advice": (
            " Use “wattwire run STUDY --variant base=… --variant head=…” to measure both side by "
            "side."
        ),
        "boot_unknown": "two occasions (possibly of different boots)",
        "one_boot": "two occasions of the same boot",
        "two_boots": "two occasions of different boots",
        "noise_unknown_both": (
            "The noise floor of {response} is unknown, because neither campaign has control "
            "runs (plan.controls)."
        ),
        "noise_unknown_imported": (
            "The noise floor of {response} is unknown, because imported data have no control runs."
        ),
        "noise_both": (
            "Noise floor of {response} (far end of the interval of the ratio between two labels of "
            "one treatment): {sides}. No effect of {noise:percent} or less is claimed."
        ),
        "side_noise": "up to {noise:percent} in {campaign} ({pairs:plural pair})",
        "no_pairs": "{campaign} has no treatment under two labels",
        "changes_unknown": "The changes between the two campaigns are not recorded.",
        "no_changes": (
            "Both campaigns have the same cells, kits and agent, so the measured programs are "
            "unchanged."
        ),
        "changes": "Changes between the two campaigns: {changed:listed}.",
        "agent_changed": (
            "The agent performs the measurement, so this change may cause part of a difference."
        ),
        "unmatched": (
            "Treatments of {campaign} that were skipped, because {counterpart} does not have them: "
            "{treatments}{more}."
        ),
        "more": " and {more} more",
        "not_measured_of": ("Planned runs of {campaign} that were not executed: {runs:count}."),
        "excluded_of": ("Runs excluded on evidence independent of the measured values: {counts}."),
        "count": "{runs} of {campaign}",
        "of_campaign": "{campaign}: {note}",
    },
)

VALIDITY = Sentences("validity")
NAMED_MAX = 4
AGENT_BUILD = "agent build"


def notes(judged: Judged) -> list[Phrase]:
    """Return sentences on the limitations of a comparison."""
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
            return _of_campaign(note.campaign, Phrase(VALIDITY.sentence(note.notice)))
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
            advice = PHRASES("side_by_side_advice") if note.have_variants else ""
            return PHRASES("occasions", occasions=_occasions(note), advice=advice)
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
        absent = [
            PHRASES("none_lost") if column == "loss_share" else PHRASES("none_failed")
            for column in note.observed
        ]
        if not absent:
            return PHRASES("losses_unknown")
        return PHRASES("no_losses", absent=joined(absent, " and "))
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
        title = note.response.title
        if note.imported:
            return PHRASES("noise_unknown_imported", response=title)
        return PHRASES("noise_unknown_both", response=title)
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
