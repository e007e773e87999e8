"""Register the commands of the command line. Each module implements one or more commands."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Verb:
    """A command with its module, its line in the help, and its aliases."""

    module: str
    help: str
    aliases: tuple[str, ...] = ()


VERBS = {
    "list": Verb("list", "list studies, cells, meters or links", ("ls",)),
    "build": Verb("build", "build the named cells, or all cells"),
    "check": Verb("check", "run the conformance suite on cells, or check the emulation of links"),
    "run": Verb("run", "run a study, or continue a campaign"),
    "status": Verb("status", "show the progress of a campaign"),
    "report": Verb("report", "write a campaign's page"),
    "doctor": Verb("doctor", "check what can be measured here, and how to add what is missing"),
    "try": Verb("try_cmd", "compare cells now, without a study"),
    "new": Verb("new", "write a commented study as a starting point"),
    "exec": Verb("exec", "measure any command, or a running system"),
    "topics": Verb("topics", "watch the topics of a running system: rate, latency, age, loss"),
    "import": Verb("import_cmd", "make a campaign from the data of a paper, or from a table"),
    "bundle": Verb("bundle", "archive a campaign without names of people and machines"),
    "plan": Verb("plan", "show the runs of a study, their duration and disk space"),
    "show": Verb(
        "show", "one run: treatment, verdict, evidence, figures; or a cell: settings, libraries"
    ),
    "calibrate": Verb("calibrate", "measure the energy of CPU time here, with an energy counter"),
    "clean": Verb("clean", "remove leftovers of killed runs, and old builds"),
    "compare": Verb("compare", "check whether a campaign or variant is worse than another"),
}
"""Commands in the order of the help, with their summaries, so that `--help` imports no command's
module.
"""


def verb_named(name: str) -> Verb | None:
    """Return the command with a name or alias, or None."""
    return next((v for known, v in VERBS.items() if name == known or name in v.aliases), None)


def add_verb(verbs: Any, name: str, **options: Any) -> argparse.ArgumentParser:
    """Add the command `name` to the parser and return the command's parser.

    `options` are passed to `argparse.ArgumentParser`.
    """
    verb = VERBS[name]
    added: argparse.ArgumentParser = verbs.add_parser(
        name, help=verb.help, aliases=verb.aliases, **options
    )
    return added
