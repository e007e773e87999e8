"""Errors with the position, the value, the allowed values and a remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

CLOSE = 0.5
"""Minimum similarity ratio of difflib for a suggestion."""
UNIT_MAX = 3
"""Maximum length of a name's last part that is treated as a unit."""

EXIT_OK = 0
EXIT_BAD_RESULT = 1
EXIT_USAGE = 2
EXIT_ENVIRONMENT = 3
EXIT_NOTHING_USABLE = 4
"""Exit code if no run is valid, so that no question has an answer."""
EXIT_CANNOT_TELL = 5
"""Exit code if a comparison or a limit is undecided."""


class WattwireError(Exception):
    """Base class of errors that the user can resolve. Only `cli` converts them to exit codes."""

    exit_code = EXIT_BAD_RESULT


class UsageError(WattwireError):
    """The request, a study or a manifest is invalid."""

    exit_code = EXIT_USAGE


class MissingError(WattwireError):
    """The machine lacks a toolchain, a permission or disk space."""

    exit_code = EXIT_ENVIRONMENT


class AgentLostError(WattwireError):
    """The agent died or its pipe broke. This is a failure of wattwire, not of the cell."""


def as_sentence(error: Exception) -> str:
    """Return the message of an error with a full stop, so that another sentence can follow."""
    text = str(error)
    return text if text.endswith((".", "?")) else f"{text}."


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ` Did you mean "x"?` for the most similar known word, or an empty string.

    A common unit does not make two words similar. For example, window_s does not suggest
    cooldown_s.
    """
    close = difflib.get_close_matches(word, sorted(known), n=9, cutoff=CLOSE)
    match = next((name for name in close if _stems_close(word, name)), None)
    return f' Did you mean "{match}"?' if match else ""


def _stems_close(word: str, name: str) -> bool:
    """Return whether two words are similar without the unit that they share.

    The result is True for words without a common unit.
    """
    (stem, _, unit), (other_stem, _, other_unit) = word.rpartition("_"), name.rpartition("_")
    if not stem or not other_stem or unit != other_unit or len(unit) > UNIT_MAX:
        return True
    return difflib.SequenceMatcher(None, stem, other_stem).ratio() >= CLOSE


def unknown(
    where: str,
    kind: str,
    word: str,
    known: Iterable[str],
    called: Mapping[str, str] | None = None,
) -> UsageError:
    """Return the error for a word that is not in a closed vocabulary.

    `called` maps common synonyms to known words.
    """
    names = sorted(known)
    listed = ", ".join(names) if names else "none"
    meant = (called or {}).get(word)
    hint = f' Did you mean "{meant}"?' if meant in names else nearest(word, names)
    return UsageError(f'{where}: unknown {kind} "{word}"; known: {listed}.{hint}')
