"""Read topology files: wattwire's own format in TOML, and that of iRobot's ros2-performance."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wattwire.catalog.manifest import read_toml
from wattwire.model.errors import UsageError
from wattwire.model.flows import TOPOLOGY, irobot_topology, is_irobot

BYTES_MAX = 16 << 20
"""Longest topology file that is read, in bytes."""


def with_topology(document: Mapping[str, Any], study: Path) -> dict[str, Any]:
    """Return a study's document with the content of its topology file instead of its name.

    The name is relative to the study's folder. A campaign therefore has its topology when it
    resumes. Raises UsageError for an unreadable file.
    """
    name = document.get(TOPOLOGY)
    if not isinstance(name, str):  # none, or a table, which the parser checks
        return dict(document)
    return {**document, TOPOLOGY: {"file": name, **read_topology(study.parent / name)}}


def read_topology(path: Path) -> dict[str, Any]:
    """Return the table of a topology file. Raises UsageError if it cannot be read."""
    if path.suffix == ".toml":
        return dict(read_toml(path))
    try:
        if path.stat().st_size > BYTES_MAX:
            raise UsageError(f"{path}: a topology of more than {BYTES_MAX:,} bytes")
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be read ({error.strerror}); allowed: a topology file (.toml, or .json "
            "in the format of ros2-performance), relative to the study's folder"
        ) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: no JSON text ({error}); correct it, or write TOML") from error
    if not isinstance(document, dict) or not is_irobot(document):
        raise UsageError(
            f"{path}: found no list `nodes`; allowed: an object with the nodes of a topology in "
            "the format of ros2-performance (docs/topologies.md)"
        )
    return irobot_topology(document, str(path))
