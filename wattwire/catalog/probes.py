"""Read the manifests of probes, which watch the messages of a running system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wattwire.catalog import manifest
from wattwire.catalog.cells import Cell
from wattwire.model.errors import UsageError, unknown

MANIFEST = "probe.toml"
REMEDIES = ("no_graph", "no_type", "no_match", "unsequenced")
"""Situations for which a manifest has the words of its middleware."""
PROBE_KEYS: dict[str, Any] = {
    "title": str, "language": str, "inputs": manifest.WORDS, "requires": manifest.WORDS,
    "excludes": manifest.WORDS, "remedies": dict.fromkeys(REMEDIES, str),
    "build": manifest.BUILD_KEYS, "run": manifest.RUN_KEYS,
}  # fmt: skip


@dataclass(frozen=True)
class Probe(Cell):
    """The program of a probe. As a cell, it is built with its middleware's environment."""

    @property
    def title(self) -> str:
        return str(self.document.get("title", self.middleware.name))

    @property
    def excludes(self) -> list[str]:
        """Return the patterns of topics that are not read unless they are named in full."""
        patterns: list[str] = self.document.get("excludes", [])
        return patterns

    @property
    def remedies(self) -> dict[str, str]:
        remedies: dict[str, str] = self.document["remedies"]
        return remedies


def read_probe(path: Path, languages: Mapping[str, Path]) -> dict[str, Any]:
    """Return the checked document of a manifest. Raises UsageError with the key and the remedy."""
    document = manifest.read_toml(path)
    manifest.check_keys(document, PROBE_KEYS, str(path))
    for key in ("language", "build", "run"):
        if key not in document:
            raise UsageError(f"{path}: {key}: found nothing; allowed: a value. Add the key.")
    if document["language"] not in languages:
        raise unknown(str(path), "language", document["language"], languages)
    for key in REMEDIES:
        if key not in document.get("remedies", {}):
            raise UsageError(f"{path}: remedies.{key}: found nothing; allowed: a sentence")
    return document
