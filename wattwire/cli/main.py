"""Parse the command line and run a command.

Exit codes: 0 success, 1 bad result, 2 usage error, 3 environment error, 4 no valid run, 5 the
comparison cannot tell.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import gc
import importlib
import os
import re
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

from wattwire import __version__
from wattwire.cli import damaged
from wattwire.cli.verbs import VERBS, add_verb, verb_named
from wattwire.cli.wrap import printable_streams, searchable
from wattwire.model.errors import EXIT_BAD_RESULT, EXIT_ENVIRONMENT, WattwireError, nearest

DISK_ERRORS = {
    errno.ENOSPC: "the disk is full",
    errno.EROFS: "the file system is read-only",
    errno.EDQUOT: "the disk quota is used up",
}
COLLECTED_AFTER = (50_000, 20, 50)
"""Thresholds for gc.set_threshold.

The first is the number of new objects per collection of generation 0. The others are the numbers of
collections of generations 0 and 1 per collection of the next generation.
"""
COMMAND = "command_name"
"""Attribute of the parsed options with the command's name."""
GIVEN = "options_given"
"""Attribute of the parsed options with the value of each option that was given."""
READERS = ("status", "report", "bundle", "show", "compare")
"""Commands that read campaigns and measure nothing."""
ATTACHABLE = ("pid", "cgroup", "unit")
"""Kinds of targets of `exec --attach`, which are not options of their own."""
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


class Terminated(KeyboardInterrupt):
    """Raised on SIGTERM, to end the current run and all processes like Ctrl-C."""


@contextlib.contextmanager
def seldom_collected() -> Iterator[None]:
    """Collect unreachable cycles rarely.

    Collections took 5 % of a report's time and freed almost nothing. Reference counting frees
    nearly all objects immediately.
    """
    before = gc.get_threshold()
    gc.set_threshold(*COLLECTED_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextlib.contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Raise Terminated on SIGTERM, which ends the nodes and the agent and closes the journal."""

    def end(*_: object) -> None:
        raise Terminated

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def open_standard_files() -> None:
    """Open standard files that the caller has closed, as /dev/null.

    Otherwise, the next file of a campaign would get the number of the standard output, and nodes
    would write to it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    open_standard_files()
    with printable_streams():
        return _main(arguments)


def _main(arguments: Sequence[str] | None) -> int:
    typed = sys.argv[1:] if arguments is None else list(map(str, arguments))
    try:
        with ended_by_sigterm(), seldom_collected():
            options = parsed(typed)
            options.typed = typed
            campaign_path = getattr(options, "campaign", None) or getattr(options, "resume", None)
            campaign_path = campaign_path or " or ".join(
                filter(None, map(vars(options).get, ("base", "head")))
            )
            reads = typed[0] in READERS or getattr(options, "resume", None)
            with damaged.damage_named(campaign_path) if reads else nullcontext():
                return int(options.call(options))
    except WattwireError as error:
        _complain(str(error))
        return error.exit_code
    except Terminated:
        print("wattwire: terminated by SIGTERM; finished work is kept", file=sys.stderr)
        return EXIT_TERMINATED
    except KeyboardInterrupt:
        print("wattwire: interrupted; finished work is kept", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return EXIT_BAD_RESULT  # the reader has closed the pipe
    except OSError as error:
        file_name = error.filename or "a file"
        if error.errno not in DISK_ERRORS:
            _complain(f"{file_name}: {error.strerror or error}")
            return EXIT_ENVIRONMENT
        _complain(
            f"{file_name}: {DISK_ERRORS[error.errno]}. Finished work is kept. Fix this and "
            "continue with --resume DIR, or choose another folder with --campaign DIR."
        )
        return EXIT_ENVIRONMENT


def _complain(text: str) -> None:
    """Print an error, wrapped on a terminal or as one searchable line in a log."""
    print(searchable(f"wattwire: {text}", sys.stderr), file=sys.stderr)


def parsed(typed: Sequence[str]) -> argparse.Namespace:
    """Parse a command line. On an error, print the command's usage and exit with code 2.

    argparse alone would print the top-level usage for an unknown option of a command.
    """
    verb = verb_named(typed[0]) if typed else None
    grammar = parser([verb.module]) if verb else outline()
    if typed and not typed[0].startswith("-") and verb is None:
        known = ", ".join(VERBS)
        grammar.error(f'unknown command "{typed[0]}"; known: {known}.{nearest(typed[0], VERBS)}')
    options, unknown_arguments = grammar.parse_known_args(typed)
    if unknown_arguments:
        _refuse(grammar, options, unknown_arguments, typed)
    return options


def _refuse(
    grammar: argparse.ArgumentParser,
    options: argparse.Namespace,
    unknown_arguments: Sequence[str],
    typed: Sequence[str],
) -> None:
    """Print the command's usage and the most similar option, and exit."""
    (commands,) = (
        action for action in grammar._actions if isinstance(action, argparse._SubParsersAction)
    )
    command = commands.choices[getattr(options, COMMAND)]
    option_names = [name for name in command._option_string_actions if name.startswith("--")]
    hints = (_hint(word, typed, option_names) for word in unknown_arguments if word[:2] == "--")
    hint = next(filter(None, hints), "")
    if "--" not in typed and any(a.nargs == argparse.REMAINDER for a in command._actions):
        hint += " If this is an option of the command to measure, write -- before that command."
    command.error(f"unrecognized arguments: {' '.join(unknown_arguments)}.{hint}")


def _hint(word: str, typed: Sequence[str], option_names: Sequence[str]) -> str:
    """Return ` Did you mean "--x"?` for an unknown option, or ""."""
    name, value = [*re.split("[=:]", word[2:], maxsplit=1), ""][:2]
    if "--attach" in option_names and name in ATTACHABLE:
        value = value or [*typed, "…"][typed.index(word) + 1]
        return f' Did you mean "--attach {name}:{value}"?'
    # The dashes, which all options share, would make short names similar.
    return nearest(name, [option[2:] for option in option_names]).replace('"', '"--', 1)


def outline() -> argparse.ArgumentParser:
    """Return a parser that knows all command names, without their options.

    Importing the modules of all commands takes 1.5 s, which is too long for a list of names.
    """
    top, verbs = _top()
    for name in VERBS:
        add_verb(verbs, name)
    return top


def parser(modules: Iterable[str] | None = None) -> argparse.ArgumentParser:
    """Return a parser of the commands in these modules of `cli/verbs`, or in all modules."""
    top, verbs = _top()
    for name in dict.fromkeys(verb.module for verb in VERBS.values()):
        if modules is None or name in modules:
            importlib.import_module(f"wattwire.cli.verbs.{name}").add_to(verbs)
    return top


class StoreOnce(argparse._StoreAction):
    """Store the value of an option, and refuse a second, different value.

    argparse alone would keep the last value without a word.
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        earlier = getattr(namespace, GIVEN, {})
        first = earlier.setdefault(self.dest, values) if option_string else values
        if first is not values and first != values:  # a nan differs from itself
            parser.error(
                f"argument {option_string}: found {first} and {values}; allowed: one value"
            )
        setattr(namespace, GIVEN, earlier)
        super().__call__(parser, namespace, values, option_string)


class CommandParser(argparse.ArgumentParser):
    """A parser, also of each command, whose options have one value unless they are repeatable."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for name in (None, "store"):
            self.register("action", name, StoreOnce)


def _top() -> tuple[argparse.ArgumentParser, Any]:
    top = CommandParser(
        prog="wattwire",
        description="Measure what a message costs: latency, loss, CPU, memory, energy.",
    )
    top.add_argument("--version", action="version", version=f"wattwire {__version__}")
    verbs = top.add_subparsers(title="commands", required=True, metavar="COMMAND", dest=COMMAND)
    return top, verbs


if __name__ == "__main__":
    raise SystemExit(main())
