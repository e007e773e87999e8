"""Store measurements of a build on this host, in the cache: a folder per kind, a file per build."""

from __future__ import annotations

import json
import os
import platform
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from wattwire.rig import cache


def noted(kind: str, build_key: str) -> dict[str, Any] | None:
    """Return the stored document of a build; None without a readable one of this host."""
    try:
        document = json.loads(_path(kind, build_key).read_text(encoding="utf-8"))
        if document.pop("host") != platform.node():  # hosts may share a cache
            return None
        return dict(document)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def write_note(kind: str, build_key: str, measured: Any) -> None:
    """Store a dataclass for a build. It replaces an earlier one of its kind."""
    path = _path(kind, build_key)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        json.dump({"host": platform.node(), **asdict(measured)}, file)
    os.replace(file.name, path)


def _path(kind: str, build_key: str) -> Path:
    return cache.folder() / kind / f"{build_key}.json"
