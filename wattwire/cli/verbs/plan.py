"""Implement `plan`, which prints the runs of a study, their duration and the usable meters."""

from __future__ import annotations

import argparse
from typing import Any

from wattwire.cli.options import study_options, variant_options
from wattwire.cli.own_agent import starting_agent
from wattwire.cli.verbs import add_verb


def add_to(verbs: Any) -> None:
    """Register the command."""
    verb = add_verb(verbs, "plan")
    study_options.add_options(verb)
    variant_options.add_options(verb)
    verb.add_argument("--table", action="store_true", help="print all runs in their order")
    verb.add_argument(
        "--pilot",
        metavar="DIR",
        help="compute the required number of blocks from the scatter of this finished campaign",
    )
    verb.add_argument(
        "--width", metavar="SHARE", default=None,
        help="with --pilot: the desired ± width of a ratio's interval, such as 5%% or 0.05 "
             "(default: the study's stop_width, else 5%%)",
    )  # fmt: skip
    verb.set_defaults(call=plan)


def plan(options: argparse.Namespace) -> int:
    """Print the runs of a study on this machine. Nothing is built or run.

    Raises UsageError for invalid options, and MissingError if the machine lacks a requirement.
    """
    with starting_agent() as agent:
        # The modules of a plan load while the agent probes its meters; both take a tenth of a
        # second.
        from wattwire.cli.planning.printed_plan import print_plan  # noqa: PLC0415

        return print_plan(options, agent)
