"""Implement `run --variant NAME=WHAT`, which measures variants of a study within every block.

WHAT is a folder whose cells take precedence (a second checkout or a git revision), a list of levels
to change, or empty for the unchanged study.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from wattwire.cli import studies
from wattwire.cli.quantities import share
from wattwire.model import words
from wattwire.model.deployment import EXEC
from wattwire.model.errors import UsageError
from wattwire.model.fields import merge
from wattwire.model.metrics import COMPARED, check_response, metrics_in
from wattwire.model.variants import FACTOR
from wattwire.rig.git_trees import tree_of

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
ALLOWED = (
    "NAME=FOLDER (a folder that contains middleware/ or languages/), NAME=git:REVISION, "
    "NAME=KEY=LEVEL (such as head=settings.NAME=LEVEL; several with commas), or NAME= for the "
    "unchanged study"
)
ASKED = tuple(name for name in metrics_in(COMPARED) if name.endswith("_per_message"))
"""Compared costs of nodes. Only commands, which need not count messages, have other costs."""
LOOKS = 2
GIT = "git:"


def applied(
    document: dict[str, Any],
    options: argparse.Namespace,
    parse: Callable[[str], tuple[str, dict[str, Any]]] | None = None,
    asked: Sequence[str] = ASKED,
) -> dict[str, Any]:
    """Return the study with its variants and a single question about them.

    `parse` returns the name and the table of an option, and `asked` are the compared responses
    without --response. Without --variant, return the study unchanged. Raises UsageError for invalid
    variants.
    """
    if not options.variants:
        if document.get("variants"):
            return _with_own_variants(document, options)
        _refuse_idle(document, options)
        return document
    if FACTOR in document.get("factors", {}):
        raise UsageError("--variant: the study defines its own variants; leave out the option")
    tables = dict((parse or _parsed)(text) for text in options.variants)
    names = list(tables)
    if len(names) != len(options.variants):
        raise UsageError(
            f"--variant: two variants of {words.listed(options.variants)} have the same name. "
            "Use a different name for each variant."
        )
    if len(names) < 2:
        raise UsageError(
            f"--variant {options.variants[0]}: a comparison needs two variants; add another, "
            "such as --variant head=…"
        )
    answers = {"baseline": {FACTOR: names[0]}, **_answers(document, options)}
    left_out = [str(question.get("id") or "one") for question in document.get("question", [])]
    note = (
        f" A comparison skips the study's own questions ({', '.join(left_out)}); "
        "--response names the compared responses."
    )
    comparison = _question(names, options.response or asked, note if left_out else "")
    overlay = {"plan": {"primary": FACTOR}, "answers": answers, "question": [comparison]}
    changed = merge({**document, "variants": tables}, overlay)
    changed["factors"] = {FACTOR: names, **document.get("factors", {})}
    return changed


def _with_own_variants(document: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Return a study that defines its variants, with the options of their comparison.

    The study holds them, so that the page, the exit code and a resumed run agree.
    """
    overlay: dict[str, Any] = {}
    if answers := _answers(document, options):
        overlay["answers"] = answers
    if options.response:
        own = [q for q in document.get("question", []) if q.get("factors") != [FACTOR]]
        names = document.get("factors", {}).get(FACTOR) or list(document["variants"])
        overlay["question"] = [*own, _question(names, options.response)]
    return merge(document, overlay) if overlay else document


def _answers(document: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Return the table `answers` of the options. Raises UsageError for invalid options."""
    for name in options.response:
        check_response(name, "--response")
    answers: dict[str, Any] = {}
    if options.margin is not None:
        answers["margin"] = share(options.margin, "--margin")
    if options.confirm:
        if document.get("plan", {}).get("stop_width"):
            raise UsageError(
                "--confirm cannot be combined with a study that stops by width "
                "(plan.stop_width). Leave out --confirm, or add --set plan.stop_width=0."
            )
        answers["looks"] = LOOKS
    return answers


def _question(names: Sequence[str], responses: Sequence[str], note: str = "") -> dict[str, Any]:
    """Return the question that compares the variants."""
    text = f"Does {' or '.join(map(str, names[1:]))} cost more than {names[0]}?{note}"
    return {"id": FACTOR, "text": text, "factors": [FACTOR], "responses": list(responses)}


def _refuse_idle(document: dict[str, Any], options: argparse.Namespace) -> None:
    """Raise UsageError for options that need a comparison or limits if the study has none."""
    given = {"--confirm": options.confirm, "--margin": options.margin is not None}
    given["--response"] = bool(options.response)
    belongs = "needs a comparison. Add --variant NAME=WHAT twice"
    if not document.get("limit"):
        given["--junit"], given["--markdown"] = bool(options.junit), bool(options.markdown)
    remedy = "set --max or --min" if EXEC in document else "add a [[limit]] to the study"
    for option, is_given in given.items():
        if is_given:
            limits = f", {remedy}" if option in ("--junit", "--markdown") else ""
            raise UsageError(f"{option} {belongs}{limits}, or leave out the option.")


def _parsed(text: str) -> tuple[str, dict[str, Any]]:
    """Parse a --variant and return its name and table. Raises UsageError for invalid text."""
    name, equals, value = text.partition("=")
    if not equals or not NAME.fullmatch(name):
        raise UsageError(f"--variant {text}: allowed: {ALLOWED}")
    table: dict[str, Any] = {}
    for term in filter(None, (term.strip() for term in value.split(","))):
        key, levels, level = term.partition("=")
        if levels:
            option = f"--variant {name}: {key}"
            table.setdefault("levels", {})[key] = studies.level_of(key, level, option)
        elif "root" in table:
            raise UsageError(f"--variant {text}: found two folders; allowed: {ALLOWED}")
        elif term.startswith(GIT):
            root, table["commit"] = tree_of(term.removeprefix(GIT))
            table["root"] = str(root)
        else:
            table["root"] = _folder(term, text)
    return name, table


def command_of(text: str) -> tuple[str, dict[str, Any]]:
    """Parse NAME=COMMAND of `exec --variant`, and return the name and the table."""
    name, equals, command = text.partition("=")
    try:
        is_valid = bool(equals and NAME.fullmatch(name) and shlex.split(command))
    except ValueError:  # an open quotation
        is_valid = False
    if not is_valid:
        raise UsageError(
            f"--variant {text}: allowed: NAME=COMMAND, such as head='./client --count 1000'. To "
            "use a shell, write head='sh -c \"…\"'."
        )
    return name, {"command": command}


def _folder(path: str, text: str) -> str:
    if not Path(path).is_dir():
        raise UsageError(f"--variant {text}: folder {path} does not exist; allowed: {ALLOWED}")
    return str(Path(path).resolve())
