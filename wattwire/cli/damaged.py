"""What is said where a campaign's files hold what no wattwire wrote: words, no stack of calls."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import traceback
from collections.abc import Iterator
from pathlib import Path

from wattwire.model.errors import UsageError, WattwireError

DEBUG = "WATTWIRE_DEBUG"
"""Set in the environment: the error is raised as it is."""
UNREADABLE = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError,
    ValueError, sqlite3.Error,
)  # fmt: skip
"""What code meets in a document of another shape. A full disk and the like are OSErrors."""


@contextlib.contextmanager
def told(campaign: Path | str) -> Iterator[None]:
    """Turn what a reader of `campaign` trips over into a UsageError that names the place.

    Files are checked where they are read, and named there; this is for the values deep inside.
    """
    try:
        yield
    except WattwireError:
        raise
    except BaseException as error:
        # Polars' panics are no Exception, and importing Polars takes longer than many a verb.
        unreadable = isinstance(error, UNREADABLE) or type(error).__module__.startswith("polars")
        unreadable = unreadable or type(error).__name__ == "PanicException"
        if not unreadable or os.environ.get(DEBUG):
            raise
        where = traceback.extract_tb(error.__traceback__)[-1]
        reason = str(error).partition("\n")[0] or "no more is known"
        raise UsageError(
            f"{campaign}: cannot be read: {type(error).__name__}: {reason} (at "
            f"{Path(where.filename).name}:{where.lineno}). Either a file in it was changed or "
            "damaged since wattwire wrote it, so put it back from a copy; or this is a fault of "
            f"wattwire, and {DEBUG}=1 shows where."
        ) from error
