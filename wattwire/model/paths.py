"""Locate the cache folder, and validate file names and CSV cells."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wattwire.model.errors import MissingError

FORMULA_BEGINS = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a CSV cell that spreadsheets interpret as a formula."""


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the cache folder that an agent uses in this environment (see agent/src/cache.rs).

    Raise MissingError if the environment names no folder. A fixed folder in /tmp is no alternative,
    because any user could create it first and put builds into it.
    """
    if environment.get("WATTWIRE_CACHE"):
        return Path(environment["WATTWIRE_CACHE"])
    if environment.get("XDG_CACHE_HOME"):
        return Path(environment["XDG_CACHE_HOME"], "wattwire")
    home = environment.get("HOME")
    if home:
        return Path(home, ".cache", "wattwire")
    raise MissingError(
        "the environment has no HOME, so there is no folder for the build cache; "
        "export WATTWIRE_CACHE=FOLDER, a folder that only this user can write to"
    )


def is_plain_name(name: str) -> bool:
    """Return whether `name` is a visible file name without separators or control characters."""
    return name[:1] not in ("", ".") and name.isprintable() and not set(name) & {"/", "\\"}


def spreadsheet_safe(cell: Any) -> Any:
    """Return a CSV cell, with a leading quote if a spreadsheet would interpret it as a formula.

    Numbers are unchanged. See OWASP, "CSV Injection".
    """
    if not isinstance(cell, str) or cell[:1] not in FORMULA_BEGINS or _is_number(cell):
        return cell
    return f"'{cell}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
