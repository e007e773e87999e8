"""Define the options of `topics`.

Its implementation is imported on execution, because the import takes a second.
"""

from __future__ import annotations

import argparse
from typing import Any

from wattwire.cli.verbs import add_verb

EPILOGUE = """\
examples:
  wattwire topics --for 30s
  wattwire topics '/camera/*' /scan --live
  wattwire topics --exclude '/diagnostics*' --json > topics.jsonl
  wattwire topics --for 60s --repeat 5 --campaign before

A probe joins the running system as one more subscriber and publishes nothing. A row is a publisher
on a topic. The latency is the time from the publication to the take by the probe; the age is the
time since the stamp in the header of the message.
"""


def add_to(verbs: Any) -> None:
    """Register the command and its options."""
    verb = add_verb(
        verbs, "topics", formatter_class=argparse.RawDescriptionHelpFormatter, epilog=EPILOGUE
    )
    verb.add_argument(
        "patterns", nargs="*", metavar="PATTERN",
        help="topics to read, as in a shell: '/camera/*' (default: all)",
    )  # fmt: skip
    verb.add_argument(
        "--for", metavar="TIME", dest="length",
        help="length of the window, such as 30s (default) or 2m",
    )  # fmt: skip
    verb.add_argument(
        "--live", action="store_true",
        help="show the last 5 s once per second, until --for or Ctrl-C",
    )  # fmt: skip
    verb.add_argument(
        "--exclude", action="append", default=[], metavar="PATTERN",
        help="topics that the probe must not subscribe to (repeatable)",
    )  # fmt: skip
    verb.add_argument("--domain", metavar="N", default="", help="the system's domain")
    verb.add_argument("--probe", metavar="NAME", help="the probe, if several are installed")
    verb.add_argument(
        "--campaign", "--out", "-o", metavar="DIR", dest="campaign",
        help="store the result as a campaign for `wattwire compare` and its page",
    )  # fmt: skip
    verb.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="with --campaign: watch N times"
    )
    verb.add_argument(
        "--attach", action="append", default=[], metavar="WHAT",
        help="with --campaign: also measure pid:NUMBER, cgroup:PATH or unit:NAME, as `exec` does "
        "(repeatable)",
    )  # fmt: skip
    verb.add_argument(
        "--perturbation", action="store_true",
        help="also measure the CPU time of all other processes with and without the probe "
        "(a minute and a half)",
    )  # fmt: skip
    verb.add_argument("--json", action="store_true", help="print a JSON object per line")
    verb.set_defaults(call=execute)


def execute(options: argparse.Namespace) -> int:
    """Watch, print the table, and return the exit code."""
    from wattwire.cli.topics import watch  # noqa: PLC0415 - statistics take a second to load

    return watch.execute(options)
