"""Define the options of `exec`.

Its implementation is imported on execution, because the import takes a second.
"""

from __future__ import annotations

import argparse
from typing import Any

from wattwire.cli.options import comparison_options, study_options, variant_options
from wattwire.cli.verbs import add_verb

EPILOGUE = """\
examples:
  wattwire exec --for 60s -- ros2 launch my_robot bringup.launch.py
  wattwire exec --for 60s --topics '/camera/*' -- ros2 launch my_robot bringup.launch.py
  wattwire exec --repeat 5 --messages 10000 -- ./my_publisher --count 10000
  wattwire exec --for 30s --attach unit:mosquitto --attach pid:1234
  wattwire exec --variant base='./client_old 1000' --variant head='./client_new 1000' \\
      --value-from p50_ms --margin 5%

wattwire measures CPU time, memory, threads, context switches and, if a counter is readable, energy.
With --topics, a probe also watches the messages of the running graph: rate, size, latency, losses,
and CPU time per message. With --layers, the command's processes record where the time of their
messages goes. Messages of systems without a probe need `wattwire try` or a study.
The command's input is empty. Its output goes to a log and to standard error. At the end of --for,
wattwire sends it SIGINT, then SIGTERM, then SIGKILL. Attached processes receive no signals.
"""


def add_to(verbs: Any) -> None:
    """Register the command and its options."""
    verb = add_verb(
        verbs,
        "exec",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"{EPILOGUE}\nWith --variant: {comparison_options.EXIT_CODES}",
    )
    verb.add_argument(
        "--for", metavar="TIME", dest="length", help="length of the window, such as 60s or 2m"
    )
    verb.add_argument(
        "--repeat", type=int, metavar="N",
        help="measure N times (default: 1; with --variant: 10 blocks of all variants)",
    )  # fmt: skip
    verb.add_argument(
        "--warmup", metavar="TIME|COUNT",
        help="begin the window this time, such as 5s, or this number of messages of --count-from "
        "after the start; or, such as 2runs, first execute each command so often unmeasured",
    )  # fmt: skip
    verb.add_argument(
        "--attach",
        action="append",
        default=[],
        metavar="WHAT",
        help="pid:NUMBER, cgroup:PATH or unit:NAME of a running system (repeatable)",
    )
    count = verb.add_mutually_exclusive_group()
    count.add_argument("--messages", type=float, metavar="N", help="messages per repeat")
    count.add_argument(
        "--count-from",
        metavar="REGEX",
        help="count messages in the command's output: the number of matches, the last value of "
        "(?P<n>…), or the sum of all values of (?P<add>…)",
    )
    _add_figures_and_limits(verb)
    variant_options.add_options(
        verb,
        "NAME=COMMAND",
        "measure all variants of the command in every block, and compare each with the first",
    )
    verb.add_argument(
        "--baseline",
        metavar="TIME",
        help="total time of measurements without the command, before and after it",
    )
    study_options.add_meters(verb)
    verb.add_argument(
        "--campaign", "--out", "-o", metavar="DIR", dest="campaign",
        help="directory for the data; --out is a synonym",
    )  # fmt: skip
    _add_sources(verb)
    verb.add_argument(
        "--json", action="store_true", help="print the table as JSON to standard output"
    )
    verb.add_argument("--no-report", action="store_true", help="do not write the page at the end")
    verb.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND …")
    verb.set_defaults(call=execute)


def _add_sources(verb: argparse.ArgumentParser) -> None:
    """Add the options that measure more than the processes."""
    verb.add_argument(
        "--topics", nargs="?", action="append", default=[], metavar="PATTERN",
        help="let the probe of `wattwire topics` watch topics: all, or those of a PATTERN such as "
        "'/camera/*' (repeatable; then write -- before the command)",
    )  # fmt: skip
    verb.add_argument(
        "--layers", action="store_true",
        help="record the time that each ROS 2 message spends in each layer, and the paths of "
        "messages through the graph; needs a C compiler",
    )  # fmt: skip
    verb.add_argument(
        "--energy-estimate", action="store_true",
        help="add a modelled range of energy if no counter can be read",
    )  # fmt: skip


def _add_figures_and_limits(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--value-from", action="append", default=[], metavar="REGEX",
        help="add the last value of a figure in the output as the response value.NAME (repeatable):"
        " a name, such as p50_ms for p50_ms=4.56, NAME=REGEX with a group around the number, or a "
        "REGEX with a group (?P<p50_ms>…)",
    )  # fmt: skip
    for better in ("higher", "lower"):
        verb.add_argument(
            f"--{better}-is-better", action="append", default=[], metavar="NAME",
            help=f"{better} values of this figure of --value-from are better (default: by name)",
        )  # fmt: skip
    for bound, limit in (("max", "upper"), ("min", "lower")):
        verb.add_argument(
            f"--{bound}", action="append", default=[], metavar="NAME=NUMBER",
            help=f"{limit} limit of a response, such as cpu_s=2.5, in its unit (repeatable)",
        )  # fmt: skip


def execute(options: argparse.Namespace) -> int:
    """Measure, print the table and the data folder, and return the exit code."""
    from wattwire.cli.exec import table  # noqa: PLC0415 - statistics take a second to load

    return table.execute(options)
