"""Sentences on a look, on later changes of validity limits, and on disabled limits."""

from __future__ import annotations

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.validity import DisabledLimit, JudgedAgain, Look, Notice, notices
from wattwire.model.validity import ValidityLimits, disabled_limits
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "validity",
    {
        "look": "The state of the machine excludes no run, because validity.look is set.",
        "look_excluded_none": (
            "The default limits would not have excluded any run ({runs:plural run})."
        ),
        "look_excluded": (
            "The default limits would have excluded {excluded} of {runs:plural run} "
            "({share:percent}): {codes}."
        ),
        "command": (
            "In {excluded} of {runs:plural run}, the machine was not quiet ({codes}). exec keeps "
            "these runs; a study would exclude them. For values without the disturbance, measure "
            "on a quiet machine."
        ),
        "code": "{code} {runs}",
        "judged_again": (
            "After the measurement, the runs were judged again with {changes}: {now} (as measured: "
            "{as_measured}). The answers are exploratory."
        ),
        "valid_one": "{valid} of {runs:plural run} is valid",
        "valid": "{valid} of {runs:plural run} are valid",
        "disabled": ("{key}={limit:g} disables this limit{hint}, so it excludes no run."),
        "disabled_hint": " (50 % is written 0.5 or 50%; {limit:g} is {percent:,g} %)",
    },
)

JUDGED_AGAIN = "After the measurement, the runs were judged again"
"""First words of the notice that a report's verdicts differ from the verdicts in the files."""


def sentences(evidence: Evidence) -> list[Phrase]:
    """Return a sentence per notice on the campaign's validity limits."""
    return [sentence(notice) for notice in notices(evidence)]


def sentence(notice: Notice) -> Phrase:
    """Return a notice as a sentence."""
    if isinstance(notice, Look):
        if notice.of_command:
            return PHRASES(
                "command", excluded=notice.excluded, runs=notice.runs, codes=_codes(notice)
            )
        return joined([PHRASES("look"), _default_limits(notice)])
    if isinstance(notice, JudgedAgain):
        return PHRASES(
            "judged_again",
            changes=notice.changes,
            now=_valid(notice.valid, notice.runs),
            as_measured=_valid(notice.valid_as_measured, notice.runs_as_measured),
        )
    return _disabled(notice)


def disabled(limits: ValidityLimits) -> list[Phrase]:
    """Return a sentence per limit on a share that is 1 or more and therefore excludes no run."""
    return [_disabled(DisabledLimit(*item)) for item in disabled_limits(limits).items()]


def _disabled(notice: DisabledLimit) -> Phrase:
    limit, hint = notice.limit, Phrase()
    if limit > 1:
        hint = PHRASES("disabled_hint", limit=limit, percent=100 * limit)
    return PHRASES("disabled", key=notice.key, limit=limit, hint=hint)


def _valid(valid: int, runs: int) -> Phrase:
    return PHRASES("valid_one" if valid == 1 else "valid", valid=valid, runs=runs)


def _default_limits(look: Look) -> Phrase:
    """Return a sentence on the runs that the default limits would exclude.

    The result is "" if there are no runs.
    """
    if not look.runs:
        return Phrase()
    if not look.excluded:
        return PHRASES("look_excluded_none", runs=look.runs)
    return PHRASES(
        "look_excluded",
        excluded=look.excluded,
        runs=look.runs,
        share=look.excluded / look.runs,
        codes=_codes(look),
    )


def _codes(look: Look) -> Phrase:
    codes = [PHRASES("code", code=code.replace("_", " "), runs=runs) for code, runs in look.codes]
    return joined(codes, ", ")
