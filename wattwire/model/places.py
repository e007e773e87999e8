"""Where things of a user lie, beside any campaign."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The cache that an agent with this environment uses (agent/src/cache.rs says the same)."""
    if environment.get("WATTWIRE_CACHE"):
        return Path(environment["WATTWIRE_CACHE"])
    if environment.get("XDG_CACHE_HOME"):
        return Path(environment["XDG_CACHE_HOME"], "wattwire")
    home = environment.get("HOME")
    return Path(home, ".cache", "wattwire") if home else Path("/tmp/wattwire-cache")
