"""Add the options that change a study."""

from __future__ import annotations

import argparse


def add_options(verb: argparse.ArgumentParser) -> None:
    """Add STUDY and the options that change the study."""
    verb.add_argument("study", nargs="?", metavar="STUDY", help="name, folder or file of a study")
    verb.add_argument("--preset", metavar="P", help="a preset of the study")
    verb.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="changes",
        help="change the study, e.g. payload_bytes=1024, clients=[1,4] or plan.blocks=2",
    )
    verb.add_argument(
        "--rig", metavar="FILE",
        help="a file with hosts, networks and placements, to run the nodes on several hosts",
    )  # fmt: skip
    add_meters(verb)
    add_warm_up(verb)
    verb.add_argument(
        "--only", metavar="EXPR",
        help="run only these treatments, e.g. language=python,clients=1|2 or cell=*/go; a study "
             "of cells also accepts language and middleware",
    )  # fmt: skip


def add_look(verb: argparse.ArgumentParser) -> None:
    """Add --look, an option of all measuring commands."""
    verb.add_argument(
        "--look",
        action="store_true",
        help="disable all validity limits: no run is excluded because of the machine's state, and "
        "page and terminal report this",
    )


def add_meters(verb: argparse.ArgumentParser) -> None:
    """Add --meter, the address of a meter outside this machine, and --align for its clock."""
    verb.add_argument(
        "--meter",
        action="append",
        default=[],
        metavar="NAME=ADDRESS",
        dest="meters",
        help="read this meter outside the machine, such as a power meter at the socket "
        "(repeatable); `wattwire doctor` lists their names",
    )
    verb.add_argument(
        "--align", action="store_true",
        help="make a pseudo-random load of two minutes on all cores before the first run and after "
             "the last one, which aligns the clocks of the meters of --meter, and the trace of an "
             "oscilloscope in `wattwire report --trace`",
    )  # fmt: skip


def add_warm_up(verb: argparse.ArgumentParser) -> None:
    """Add --warmup, the length of the warm-up."""
    verb.add_argument(
        "--warmup", metavar="auto|none|CALLS|TIME",
        help="length of the discarded warm-up: auto (the default in closed loop, determined by "
             "settling runs), none, a number of calls per client, or a time such as 2s",
    )  # fmt: skip
