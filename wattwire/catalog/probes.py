"""Read the manifests of probes, which watch the messages of a running system."""

from __future__ import annotations

import os
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
DOMAIN_DIGITS_MAX = 9
PROBE_KEYS: dict[str, Any] = {
    "title": str, "language": str, "inputs": manifest.WORDS, "requires": manifest.WORDS,
    "excludes": manifest.WORDS, "domain_max": int, "domain_variable": str,
    "remedies": dict.fromkeys(REMEDIES, str),
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

    def check_own_domain(self) -> None:
        """Raise UsageError if the variable that selects the domain has an invalid value."""
        name = str(self.document.get("domain_variable", ""))
        self.check_domain(os.environ.get(name, "").strip(), f"{name} (environment variable)")

    def check_domain(self, domain: str, option: str) -> None:
        """Raise UsageError if a domain is no number, or above the limit; "" is no choice."""
        highest = self.document.get("domain_max")
        is_number = domain.isascii() and domain.isdecimal() and len(domain) <= DOMAIN_DIGITS_MAX
        if not domain or (is_number and (highest is None or int(domain) <= highest)):
            return
        limit = "such as 42" if highest is None else f"from 0 to {highest}"
        raise UsageError(f"{option}: found {domain!r}; allowed: a number {limit}")


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
