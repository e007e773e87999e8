"""Read topology files: wattwire's own format in TOML, and that of iRobot's ros2-performance."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wattwire.catalog.manifest import parsed_toml
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
    text = _text(path)
    if path.suffix == ".toml":
        return parsed_toml(text, path)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: no JSON text ({error}); correct it, or write TOML") from error
    if not isinstance(document, dict) or not is_irobot(document):
        raise UsageError(
            f"{path}: found no list `nodes`; allowed: an object with the nodes of a topology in "
            "the format of ros2-performance (docs/topologies.md)"
        )
    return irobot_topology(document, str(path))


def _text(path: Path) -> str:
    """Return the text of a topology file. Raises UsageError if it cannot be read or is too long."""
    try:
        if path.exists() and not path.is_file():  # a pipe or a device may never end
            raise UsageError(f"{path}: found no plain file; allowed: a file with a topology")
        with path.open("rb") as file:
            content = file.read(BYTES_MAX + 1)
        if len(content) > BYTES_MAX:
            raise UsageError(
                f"{path}: found more than {BYTES_MAX:,} bytes; allowed: a topology file of at most "
                "these. Name another file."
            )
        return content.decode()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"{path}: cannot be read ({reason}); allowed: a topology file (.toml, or .json "
            "in the format of ros2-performance), relative to the study's folder"
        ) from error
