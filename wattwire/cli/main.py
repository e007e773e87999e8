"""The command line: verbs, options, exit codes.

0 ok, 1 the result is bad, 2 usage, 3 environment, 4 no run is valid.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import gc
import importlib
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import nullcontext

from wattwire import __version__
from wattwire.cli import damaged
from wattwire.cli.wrap import searchable
from wattwire.model.errors import EXIT_BAD_RESULT, EXIT_ENVIRONMENT, WattwireError, nearest

DISK_ERRORS = {
    errno.ENOSPC: "the disk is full",
    errno.EROFS: "the file system is read-only",
    errno.EDQUOT: "the disk quota is used up",
}
MODULES = {
    "list": "catalog",
    "ls": "catalog",
    "build": "catalog",
    "check": "catalog",
    "run": "run",
    "status": "run",
    "report": "report",
    "doctor": "doctor",
    "try": "try_cmd",
    "new": "new",
    "exec": "exec",
    "import": "import_cmd",
    "bundle": "bundle",
    "plan": "plan",
    "show": "show",
    "calibrate": "calibrate",
    "clean": "clean",
    "compare": "compare",
}
"""The module that knows each verb, in the order of the help."""
COLLECTED_AFTER = (50_000, 20, 50)
"""New objects until a look at them, and how many looks until one at older objects."""
COMMAND = "command_name"
"""Where the parsed options hold the name of the command."""
READERS = ("status", "report", "bundle", "show", "compare")
"""Verbs that read campaigns and run nothing."""
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


class Terminated(KeyboardInterrupt):
    """SIGTERM came: the run in flight is ended as after Ctrl-C, and nothing is left running."""


@contextlib.contextmanager
def seldom_collected() -> Iterator[None]:
    """Look for unreachable cycles seldom: looking took a twentieth of a report, and found nothing.

    What is not part of a cycle, nearly all that there is, is freed at once all the same.
    """
    before = gc.get_threshold()
    gc.set_threshold(*COLLECTED_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextlib.contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM unwind like Ctrl-C, so that nodes and agent are ended and the journal closed."""

    def end(*_: object) -> None:
        raise Terminated

    if threading.current_thread() is not threading.main_thread():
        yield  # signals belong to the main thread; whoever calls from another keeps them
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    typed = sys.argv[1:] if arguments is None else list(map(str, arguments))
    try:
        with ended_by_sigterm(), seldom_collected():
            options = parsed(typed)
            options.typed = typed
            place = getattr(options, "campaign", None) or getattr(options, "resume", None)
            place = place or " or ".join(filter(None, map(vars(options).get, ("base", "head"))))
            reads = typed[0] in READERS or getattr(options, "resume", None)
            with damaged.told(place) if reads else nullcontext():
                return int(options.call(options))
    except WattwireError as error:
        _complain(str(error))
        return error.exit_code
    except Terminated:
        print("wattwire: ended by SIGTERM; what was done is kept", file=sys.stderr)
        return EXIT_TERMINATED
    except KeyboardInterrupt:
        print("wattwire: interrupted; what was done is kept", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return EXIT_BAD_RESULT  # the reader of a pipe left; it knows
    except OSError as error:
        where = error.filename or "a file"
        if error.errno not in DISK_ERRORS:
            _complain(f"{where}: {error.strerror or error}")
            return EXIT_ENVIRONMENT
        _complain(
            f"{where}: {DISK_ERRORS[error.errno]}. What was done is kept; mend it and "
            "go on with --resume DIR, or choose another place with --campaign DIR."
        )
        return EXIT_ENVIRONMENT


def _complain(text: str) -> None:
    """An error in words: one line in a log, where it is searched for; wrapped on a terminal."""
    print(searchable(f"wattwire: {text}", sys.stderr), file=sys.stderr)


def parsed(typed: Sequence[str]) -> argparse.Namespace:
    """Parse a command line; exits with 2 and the usage of the command that was typed.

    argparse by itself shows the top-level usage for an option that a command does not know.
    """
    grammar = parser(*typed[:1])
    if typed and not typed[0].startswith("-") and typed[0] not in MODULES:
        known = ", ".join(MODULES)
        grammar.error(f'unknown command "{typed[0]}"; known: {known}.{nearest(typed[0], MODULES)}')
    options, strange = grammar.parse_known_args(typed)
    if strange:
        _refuse(grammar, options, strange)
    return options


def _refuse(
    grammar: argparse.ArgumentParser, options: argparse.Namespace, strange: Sequence[str]
) -> None:
    """Exit with the usage of the command that was typed, and the option that may be meant."""
    (commands,) = (a for a in grammar._actions if isinstance(a, argparse._SubParsersAction))
    command = commands.choices[getattr(options, COMMAND)]
    spelt = [name for name in command._option_string_actions if name.startswith("--")]
    meant = (nearest(word.partition("=")[0], spelt) for word in strange if word.startswith("--"))
    command.error(f"unrecognized arguments: {' '.join(strange)}.{next(filter(None, meant), '')}")


def parser(verb: str = "") -> argparse.ArgumentParser:
    """The grammar of `verb`; of all verbs, where it is none of them.

    One verb's module is loaded for it alone: all of them take as long as many a verb does.
    """
    top = argparse.ArgumentParser(
        prog="wattwire",
        description="Measure what a message costs: latency, loss, CPU, memory, energy.",
    )
    top.add_argument("--version", action="version", version=f"wattwire {__version__}")
    verbs = top.add_subparsers(title="commands", required=True, metavar="COMMAND", dest=COMMAND)
    wanted = [MODULES[verb]] if verb in MODULES else dict.fromkeys(MODULES.values())
    for name in wanted:
        importlib.import_module(f"wattwire.cli.verbs.{name}").add_to(verbs)
    return top


if __name__ == "__main__":
    raise SystemExit(main())
