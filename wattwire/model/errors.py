"""Errors that say where, what was found, what is allowed and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

EXIT_OK = 0
EXIT_BAD_RESULT = 1
EXIT_USAGE = 2
EXIT_ENVIRONMENT = 3


class WattwireError(Exception):
    """An error a person can act on; only `cli` turns it into an exit code."""

    exit_code = EXIT_BAD_RESULT


class UsageError(WattwireError):
    """The request, a study or a manifest is wrong."""

    exit_code = EXIT_USAGE


class MissingError(WattwireError):
    """The machine lacks something: a toolchain, a right, space on the disk."""

    exit_code = EXIT_ENVIRONMENT


class AgentLostError(WattwireError):
    """The agent died or its pipe broke: our own machinery, never the cell's fault."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ` Did you mean "x"?` for the closest known word, or an empty string."""
    match = difflib.get_close_matches(word, sorted(known), n=1, cutoff=0.5)
    return f' Did you mean "{match[0]}"?' if match else ""


def unknown(where: str, kind: str, word: str, known: Iterable[str]) -> UsageError:
    """Build the error for a word that is not in a closed vocabulary."""
    names = sorted(known)
    listed = ", ".join(names) if names else "none"
    return UsageError(f'{where}: unknown {kind} "{word}"; known: {listed}.{nearest(word, names)}')
