"""Errors that say where, what was found, what is allowed and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

CLOSE = 0.5
"""From this share of common letters on a word is offered for another."""
UNIT_MAX = 3

EXIT_OK = 0
EXIT_BAD_RESULT = 1
EXIT_USAGE = 2
EXIT_ENVIRONMENT = 3
EXIT_NOTHING_USABLE = 4
"""No run is valid, so nothing can be answered: neither good nor bad."""


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
    """Return ` Did you mean "x"?` for the closest known word, or an empty string.

    A unit that two words share makes them no closer: window_s is not cooldown_s.
    """
    close = difflib.get_close_matches(word, sorted(known), n=9, cutoff=CLOSE)
    match = next((name for name in close if _stems_close(word, name)), None)
    return f' Did you mean "{match}"?' if match else ""


def _stems_close(word: str, name: str) -> bool:
    (stem, _, unit), (other, _, other_unit) = word.rpartition("_"), name.rpartition("_")
    if not stem or not other or unit != other_unit or len(unit) > UNIT_MAX:
        return True
    return difflib.SequenceMatcher(None, stem, other).ratio() >= CLOSE


def unknown(
    where: str,
    kind: str,
    word: str,
    known: Iterable[str],
    called: Mapping[str, str] | None = None,
) -> UsageError:
    """Build the error for a word that is not in a closed vocabulary.

    `called` maps words that people use to the known word for the same thing.
    """
    names = sorted(known)
    listed = ", ".join(names) if names else "none"
    meant = (called or {}).get(word)
    hint = f' Did you mean "{meant}"?' if meant in names else nearest(word, names)
    return UsageError(f'{where}: unknown {kind} "{word}"; known: {listed}.{hint}')
