"""Compare a study's variants, check its limits, and derive the exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wattwire.cli.verbs import compare
from wattwire.cli.wrap import columns, wrapped
from wattwire.model.errors import EXIT_BAD_RESULT, EXIT_CANNOT_TELL, EXIT_OK, UsageError
from wattwire.model.variants import FACTOR
from wattwire.store import Campaign

if TYPE_CHECKING:
    from wattwire.analysis.topics.comparison.result import ComparedVariants, Comparison
    from wattwire.analysis.topics.limits.numbers import Limits

Found = tuple["Comparison | None", "Limits", bool]
"""The comparison, the limits, and whether variants could not be compared."""


def of(campaign: Campaign, limits: Limits, compared: ComparedVariants) -> Found:
    """Return the comparison of the campaign's variants, and the results of the study's limits.

    The comparison is None for a campaign without variants, or if `--only` selected one variant.
    Raises UsageError if the variants cannot be compared.
    """
    if not _has_variants(campaign):
        return None, limits, False
    planned = {run["treatment"][FACTOR] for run in campaign.plan}
    if len(planned) == 1:
        text = f"One variant was measured ({planned.pop()}), so there is nothing to compare."
        print(wrapped(text, columns(sys.stderr)), file=sys.stderr)
        return None, limits, True
    if compared.result is None:
        raise UsageError(compared.reason)
    return compared.result, limits, False


def suspects(campaign: Campaign) -> list[str]:
    """Return the keys of the treatments that are worse or undecided, which are measured again.

    The result is empty if the study plans no second look, or after the second look.
    """
    looks = campaign.study.answers.looks
    if looks < 2 or campaign.journal.get("measured_again") is not None:
        return []
    from wattwire.analysis.dataset import gather
    from wattwire.analysis.topics.comparison import numbers
    from wattwire.analysis.topics.comparison.requested import Wanted
    from wattwire.analysis.topics.comparison.variants import suspect_keys, variants_of

    try:
        variants = variants_of(gather(campaign))
        return suspect_keys(variants, numbers.compare(variants, Wanted()))
    except UsageError:
        return []  # no comparison is possible; the last lines of the run give the reason


def hand_out(outcome: Found, options: argparse.Namespace) -> int:
    """Print and write the comparison and the limits, and return the exit code.

    Variants that could not be compared are no success: without a worse result or a broken limit,
    the exit code is that of "cannot tell". Raises UsageError for an output file if the study has no
    comparison and no limit.
    """
    judged, limits, is_incomparable = outcome
    if judged is None and not limits.checks:
        for name in ("markdown", "junit"):
            if getattr(options, name):
                text = (
                    f"--{name}: no variants were compared and the study has no limits, so there "
                    "is nothing to report"
                )
                if not is_incomparable:
                    raise UsageError(text)
                print(f"wattwire: {text}", file=sys.stderr)
        code = EXIT_OK
    else:
        code = compare.hand_out(judged, limits, options)
    return compare.unclear_code(options) if is_incomparable and code == EXIT_OK else code


def without_verdict(lines: Sequence[str], outcome: Found) -> list[str]:
    """Return the lines of a page without the verdict on the variants, which `hand_out` prints."""
    judged, *_ = outcome
    if judged is None:
        return list(lines)
    from wattwire.report.topic_page import Sentences  # noqa: PLC0415

    verdict = Sentences("comparison").first_line(judged)
    return [text for line in lines if (text := line.replace(verdict, "").strip())]


def of_limits(limits: Limits) -> int:
    """Print the verdicts on the study's limits, and return the exit code."""
    if not limits.checks:
        return EXIT_OK
    from wattwire.report.topic_page import Sentences  # noqa: PLC0415

    print(wrapped(Sentences("limits").summary(limits), columns(sys.stdout)))
    if limits.broken:
        return EXIT_BAD_RESULT
    return EXIT_CANNOT_TELL if limits.unclear else EXIT_OK


def _has_variants(campaign: Campaign) -> bool:
    return len(campaign.study.factors.get(FACTOR, ())) > 1
