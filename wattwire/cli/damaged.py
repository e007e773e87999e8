"""The error message for a campaign whose files hold values that wattwire never wrote."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import traceback
from collections.abc import Iterator
from pathlib import Path

from wattwire.model.errors import UsageError, WattwireError

DEBUG = "WATTWIRE_DEBUG"
"""Environment variable that makes wattwire raise the original error, with its traceback."""
UNREADABLE = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError,
    ValueError, sqlite3.Error,
)  # fmt: skip
"""Errors caused by a document of the wrong shape. A full disk, for example, is an OSError."""


@contextlib.contextmanager
def damage_named(campaign: Path | str) -> Iterator[None]:
    """Turn errors raised while `campaign` is read into a UsageError that names the place.

    Files are checked, and named, on reading; this covers nested values.
    """
    try:
        yield
    except WattwireError:
        raise
    except BaseException as error:
        # Polars' panics are no Exception. They are known by name, because importing Polars takes
        # longer than many verbs.
        unreadable = isinstance(error, UNREADABLE) or type(error).__module__.startswith("polars")
        unreadable = unreadable or type(error).__name__ == "PanicException"
        if not unreadable or os.environ.get(DEBUG):
            raise
        where = traceback.extract_tb(error.__traceback__)[-1]
        reason = str(error).partition("\n")[0] or "no details"
        raise UsageError(
            f"{campaign}: cannot be read: {type(error).__name__}: {reason} (at "
            f"{Path(where.filename).name}:{where.lineno}). Either a file of the campaign was "
            "changed or damaged after wattwire wrote it: restore it from a copy. Or this is a bug "
            f"in wattwire: {DEBUG}=1 shows where."
        ) from error
