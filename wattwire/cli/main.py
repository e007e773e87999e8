"""The command line: verbs, options, exit codes (0 ok, 1 result is bad, 2 usage, 3 environment)."""

from __future__ import annotations

import argparse
import contextlib
import errno
import signal
import sys
import threading
from collections.abc import Iterator, Sequence

from wattwire import __version__
from wattwire.cli import (
    bundle,
    calibrate,
    campaigns,
    clean,
    compare,
    doctor,
    execution,
    importing,
    new,
    plan,
    show,
    studies,
    things,
    trial,
    variants,
)
from wattwire.cli.wrap import searchable
from wattwire.model.errors import EXIT_BAD_RESULT, EXIT_ENVIRONMENT, WattwireError

DISK_ERRORS = {
    errno.ENOSPC: "the disk is full",
    errno.EROFS: "the file system is read-only",
    errno.EDQUOT: "the disk quota is used up",
}
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


class Terminated(KeyboardInterrupt):
    """SIGTERM came: the run in flight is ended as after Ctrl-C, and nothing is left running."""


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
    options = parser().parse_args(typed)
    options.typed = typed
    try:
        with ended_by_sigterm():
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


def parser() -> argparse.ArgumentParser:
    """The whole grammar."""
    top = argparse.ArgumentParser(
        prog="wattwire",
        description="Measure what a message costs: latency, loss, CPU, memory, energy.",
    )
    top.add_argument("--version", action="version", version=f"wattwire {__version__}")
    verbs = top.add_subparsers(title="commands", required=True, metavar="COMMAND")

    verb = verbs.add_parser("list", help="what there is: studies, cells, meters")
    verb.add_argument("what", nargs="?", choices=["studies", "cells", "meters"])
    verb.set_defaults(call=things.list_things)

    verb = verbs.add_parser("build", help="build cells (all, if none is named)")
    verb.add_argument("cells", nargs="*", metavar="CELL")
    verb.set_defaults(call=things.build)

    verb = verbs.add_parser("check", help="run the conformance suite on cells")
    verb.add_argument("cells", nargs="*", metavar="CELL", help="name or path; all if none")
    verb.add_argument("--clause", action="append", metavar="C-NN", help="only these clauses")
    verb.add_argument("--no-pairs", action="store_true", help="leave out the language pairs")
    verb.set_defaults(call=things.check)

    verb = verbs.add_parser("run", help="run a study, or go on with a campaign")
    studies.add_options(verb)
    variants.add_options(verb)
    verb.add_argument("--campaign", metavar="DIR", help="directory for the new campaign")
    verb.add_argument("--resume", metavar="DIR", help="go on with this campaign")
    verb.add_argument(
        "--accept",
        action="append",
        default=[],
        metavar="KEY",
        help="on resume: accept that this fact of the machine changed",
    )
    verb.add_argument("--yes", action="store_true", help="do not ask before a long plan")
    verb.add_argument("--no-report", action="store_true", help="do not write the page at the end")
    verb.add_argument("--plain", action="store_true", help="progress as lines, for logs")
    verb.add_argument("--json", action="store_true", help="progress as JSON lines, for machines")
    verb.set_defaults(call=campaigns.run)

    verb = verbs.add_parser("status", help="how far a campaign is")
    verb.add_argument("campaign", metavar="DIR")
    verb.set_defaults(call=campaigns.status)

    verb = verbs.add_parser("report", help="write a campaign's page")
    verb.add_argument("campaign", metavar="DIR")
    verb.set_defaults(call=campaigns.report)

    for module in (
        doctor,
        trial,
        new,
        execution,
        importing,
        bundle,
        plan,
        show,
        calibrate,
        clean,
        compare,
    ):
        module.add_to(verbs)
    return top


if __name__ == "__main__":
    raise SystemExit(main())
