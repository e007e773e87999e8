"""report: the page of a campaign."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from wattwire.cli import outcome
from wattwire.store import open_campaign


def add_to(verbs: Any) -> None:
    """Register the verb."""
    verb = verbs.add_parser("report", help="write a campaign's page")
    verb.add_argument("campaign", metavar="DIR")
    verb.set_defaults(call=report)


def write_report(path: Path) -> Path:
    """Write the page of a campaign; returns its path."""
    from wattwire.report import build_report  # noqa: PLC0415 - plotting is slow to import

    return build_report(path)


def report(options: argparse.Namespace) -> int:
    """Write the page of a campaign, finished or not; say which limits of its study are broken."""
    campaign = open_campaign(Path(options.campaign))
    try:
        print(write_report(Path(options.campaign)).resolve())
        from wattwire.report.sentences import edited_words  # noqa: PLC0415 - see write_report

        if edited := edited_words(getattr(campaign, "edited", ())):
            print(edited)
        return outcome.of_limits(campaign)
    finally:
        campaign.close()
