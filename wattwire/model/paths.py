"""Where a user's files are outside campaigns, and what is safe in a file's name and table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FORMULA_BEGINS = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet computes a cell of a CSV file that begins so."""


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The cache that an agent with this environment uses (agent/src/cache.rs says the same)."""
    if environment.get("WATTWIRE_CACHE"):
        return Path(environment["WATTWIRE_CACHE"])
    if environment.get("XDG_CACHE_HOME"):
        return Path(environment["XDG_CACHE_HOME"], "wattwire")
    home = environment.get("HOME")
    return Path(home, ".cache", "wattwire") if home else Path("/tmp/wattwire-cache")


def is_plain_name(name: str) -> bool:
    """Return whether `name` is a file's name alone: no path, not hidden, no control characters."""
    return name[:1] not in ("", ".") and name.isprintable() and not set(name) & {"/", "\\"}


def spreadsheet_safe(cell: Any) -> Any:
    """Return a CSV cell that no spreadsheet takes for a formula: such text begins with a quote.

    Numbers stay as they are. See OWASP, "CSV Injection".
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
