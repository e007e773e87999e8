"""Implement `compare`, which checks whether a campaign or a variant is worse than another."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wattwire.cli.options import comparison_options
from wattwire.cli.quantities import share
from wattwire.cli.verbs import add_verb
from wattwire.cli.wrap import columns, wrapped
from wattwire.model.errors import (
    EXIT_BAD_RESULT,
    EXIT_CANNOT_TELL,
    EXIT_NOTHING_USABLE,
    EXIT_OK,
    UsageError,
)
from wattwire.store import Campaign, ImportedCampaign, open_campaign

if TYPE_CHECKING:
    from wattwire.analysis.topics.comparison.pairing import Pairing
    from wattwire.analysis.topics.comparison.result import Comparison
    from wattwire.analysis.topics.limits.numbers import Limits

AnyCampaign = Campaign | ImportedCampaign
STDOUT = "-"


def add_to(verbs: Any) -> None:
    """Register the command and its options."""
    verb = add_verb(
        verbs,
        "compare",
        description="Compares B with A by treatment against a margin: worse, not worse, or "
        "cannot tell. For a single campaign of `run --variant`, it compares the "
        "variants within blocks.",
        epilog=comparison_options.EXIT_CODES,
    )
    verb.add_argument("base", metavar="A", help="a campaign; without B, it must have variants")
    verb.add_argument("head", metavar="B", nargs="?", help="the campaign that may be worse")
    comparison_options.add_options(verb)
    verb.add_argument(
        "--across-machines", action="store_true",
        help="also compare campaigns of different machines, and report the difference",
    )  # fmt: skip
    verb.add_argument("--json", action="store_true", help="print the comparison as a JSON object")
    verb.set_defaults(call=compare)


def compare(options: argparse.Namespace) -> int:
    """Compare campaigns or variants, print the result and write the requested files.

    Return the exit code, which is 1 if B is worse.
    """
    refuse_outputs(options)
    requested = wanted_of(options)
    with contextlib.ExitStack() as stack:
        campaigns = [
            stack.enter_context(opened(Path(name)))
            for name in (options.base, options.head)
            if name is not None
        ]
        judged, checked = _judged(campaigns, requested)
    return hand_out(judged, checked, options)


def refuse_outputs(options: argparse.Namespace) -> None:
    """Raise UsageError if a file cannot be written or if two documents go to standard output."""
    if options.json and options.markdown == STDOUT:
        raise UsageError(
            "--json and --markdown - both write to the terminal. Use --markdown with a FILE."
        )
    for name in ("markdown", "junit"):
        path = getattr(options, name)
        if path and not (name == "markdown" and path == STDOUT):
            _refuse_unwritable(Path(path), f"--{name} {path}")


def _refuse_unwritable(path: Path, given: str) -> None:
    """Raise UsageError if a file cannot be written. The check leaves no new file."""
    existed = path.exists()
    try:
        with path.open("a", encoding="utf-8"):
            pass
        if not existed:
            path.unlink()
    except OSError as error:
        raise UsageError(f"{given}: {error.strerror}; use a file that can be written") from error


def wanted_of(options: argparse.Namespace) -> Any:
    """Convert the options of a comparison to a `Wanted`.

    Raises UsageError for an invalid margin.
    """
    from wattwire.analysis.topics.comparison.requested import Wanted

    margin = None if options.margin is None else share(options.margin, "--margin")
    across = getattr(options, "across_machines", False)
    return Wanted(tuple(options.response), margin, across)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[AnyCampaign]:
    """Yield an open campaign. Raises UsageError for a campaign without a plan."""
    campaign = open_campaign(path)
    try:
        if not (path / "plan.json").is_file():
            raise UsageError(
                f"{path}: plan.json is missing, so nothing was measured; run the study again"
            )
        yield campaign
    finally:
        campaign.close()


def _judged(campaigns: Sequence[AnyCampaign], requested: Any) -> tuple[Comparison, Limits]:
    """Return the comparison, and the verdicts on the limits of the last campaign's study."""
    from wattwire.analysis.topics.comparison import numbers
    from wattwire.analysis.topics.limits.numbers import limits

    pairing = _pairing(campaigns, requested)
    _, head = pairing.campaigns[-1]
    return numbers.compare(pairing, requested), limits(head)


def _pairing(campaigns: Sequence[AnyCampaign], requested: Any) -> Pairing:
    from wattwire.analysis.dataset import gather
    from wattwire.analysis.topics.comparison.pairing import identity_of
    from wattwire.analysis.topics.comparison.two_campaigns import Source, two_campaigns
    from wattwire.analysis.topics.comparison.variants import variants_of

    if len(campaigns) == 1:
        return variants_of(gather(campaigns[0]))
    names = [campaign.path.resolve().name for campaign in campaigns]
    if names[0] == names[1]:
        names = [str(campaign.path) for campaign in campaigns]
    if campaigns[0].path.resolve() == campaigns[1].path.resolve():
        raise UsageError(f"{campaigns[0].path}: A and B are the same campaign; name two campaigns")
    sources = [
        Source(name, campaign, identity_of(campaign))
        for name, campaign in zip(names, campaigns, strict=True)
    ]
    return two_campaigns(sources[0], sources[1], requested.across_machines)


def exit_code(judged: Comparison | None, limits: Limits, options: argparse.Namespace) -> int:
    """Return the exit code of a comparison and its limits.

    A worse result or a broken limit takes precedence over "no valid run", which takes precedence
    over "cannot tell". "Cannot tell" has its own code, because it is neither a pass nor a failure.
    """
    from wattwire.report.print.comparison import nothing_usable

    if limits.broken or (judged is not None and judged.bad(unclear_is_bad=False)):
        return EXIT_BAD_RESULT
    if nothing_usable(judged, limits):
        return EXIT_NOTHING_USABLE
    unclear = limits.unclear or (judged is not None and judged.bad(unclear_is_bad=True))
    return unclear_code(options) if unclear else EXIT_OK


def unclear_code(options: argparse.Namespace) -> int:
    """Return the exit code of a comparison that cannot tell."""
    codes = {"pass": EXIT_OK, "fail": EXIT_BAD_RESULT}
    return codes.get(options.cannot_tell, EXIT_CANNOT_TELL)


def hand_out(judged: Comparison | None, limits: Limits, options: argparse.Namespace) -> int:
    """Print the comparison, write its files and return the exit code."""
    from wattwire.cli import comparison_table
    from wattwire.report.print.comparison import (
        LIMIT,
        first_line,
        json_document,
        junit,
        markdown,
    )

    code = exit_code(judged, limits, options)
    if options.json:
        document = {
            "kind": "comparison",
            **(json_document(judged) if judged else {}),
            "first_line": first_line(judged, limits),
            "limits": [
                {
                    "limit": LIMIT.limit(check),
                    "verdict": check.verdict,
                    "value": LIMIT.value(check),
                }
                for check in limits.checks
            ],
            "exit_code": code,
        }
        print(json.dumps(document))
    elif options.markdown == STDOUT:
        print(markdown(judged, limits), end="")
    else:
        width = columns(sys.stdout)
        for line in comparison_table.lines(judged, limits):
            print(wrapped(line, width) if not line.startswith("  ") else line)
    if options.markdown and options.markdown != STDOUT:
        Path(options.markdown).write_text(markdown(judged, limits), encoding="utf-8")
    if options.junit:
        text = junit(judged, limits, options.cannot_tell == "fail")
        Path(options.junit).write_text(text, encoding="utf-8")
    return code
