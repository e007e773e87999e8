"""Add the options of a comparison."""

from __future__ import annotations

import argparse

EXIT_CODES = (
    "Exit codes: 0 nothing is worse, and no limit of the study is broken; 1 a result is worse, or "
    "a limit is broken; 2 usage; 3 this machine lacks a requirement; 4 no run is valid, so there "
    "is no answer; 5 the comparison cannot tell, or a limit is undecided (--cannot-tell pass "
    "makes it 0, --cannot-tell fail makes it 1)."
)


def add_options(verb: argparse.ArgumentParser) -> None:
    """Add the options for responses, margin, exit code and output files."""
    verb.add_argument(
        "--response", action="append", default=[], metavar="NAME",
        help="compare this response (repeatable; default: CPU time and bytes per message); lost "
             "messages and failed calls are always compared",
    )  # fmt: skip
    verb.add_argument(
        "--margin", metavar="P", help="relative increase beyond which B is worse, such as 5%%"
    )
    verb.add_argument(
        "--cannot-tell", choices=["pass", "fail"],
        help="exit with 0 or 1 if the comparison cannot tell (default: exit code 5)",
    )  # fmt: skip
    verb.add_argument(
        "--markdown", metavar="FILE", help=("also write Markdown to FILE (- for the terminal)")
    )
    verb.add_argument("--junit", metavar="FILE", help="also write JUnit XML to FILE")
