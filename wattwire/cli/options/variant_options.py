"""Add the options that measure variants of a study."""

from __future__ import annotations

import argparse

from wattwire.cli.options import comparison_options


def add_options(verb: argparse.ArgumentParser, metavar: str = "NAME=WHAT", help: str = "") -> None:
    """Add --variant and --confirm, and the options of the final comparison."""
    verb.add_argument(
        "--variant", action="append", default=[], metavar=metavar, dest="variants",
        help=help or (
            "measure all variants of the study in every block, and compare each variant with "
            "the first; WHAT is a folder of cells (another checkout), git:REVISION, KEY=LEVEL, "
            "or nothing"
        ),
    )  # fmt: skip
    verb.add_argument(
        "--confirm", action="store_true",
        help=(
            "measure each worse or undecided result again in the same number of blocks, and "
            "report only confirmed results as worse"
        ),
    )  # fmt: skip
    comparison_options.add_options(verb)
