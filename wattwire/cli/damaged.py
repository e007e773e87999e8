"""Convert errors from damaged campaign files into an error message."""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Iterator
from pathlib import Path

from wattwire.model.errors import UsageError, WattwireError

DEBUG = "WATTWIRE_DEBUG"
"""Environment variable that makes wattwire raise the original error, with its traceback."""
UNREADABLE = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError,
    ValueError,
)  # fmt: skip
"""Errors that a document of the wrong structure causes. A full disk causes an OSError."""


@contextlib.contextmanager
def damage_named(campaign: Path | str) -> Iterator[None]:
    """Convert errors from reading `campaign` into a UsageError that names their origin.

    Readers validate each file and name it in their errors. This function handles the remaining
    errors, which invalid nested values cause.
    """
    try:
        yield
    except WattwireError:
        raise
    except BaseException as error:
        # Errors of SQLite and Polars are identified by name, because importing these libraries
        # takes longer than many commands. Panics of Polars are not subclasses of Exception.
        modules = ("polars", "sqlite3")
        unreadable = isinstance(error, UNREADABLE) or type(error).__module__.startswith(modules)
        unreadable = unreadable or type(error).__name__ == "PanicException"
        if not unreadable or os.environ.get(DEBUG):
            raise
        where = traceback.extract_tb(error.__traceback__)[-1]
        reason = str(error).partition("\n")[0] or "no details"
        raise UsageError(
            f"{campaign}: cannot be read: {type(error).__name__}: {reason} (at "
            f"{Path(where.filename).name}:{where.lineno}). If a file of the campaign was "
            "changed or damaged, restore it from a copy. Otherwise, this is a bug in wattwire; "
            f"{DEBUG}=1 shows the traceback."
        ) from error
