"""Read the manifests of bridges, and check what they join."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wattwire.catalog import manifest
from wattwire.catalog.cells import Cell, Middleware
from wattwire.model.deployment import RELAYED
from wattwire.model.errors import UsageError, unknown
from wattwire.model.hosts.bridging import END_SETTING, ENTRY, EXIT, OUTER_SETTING
from wattwire.model.treatment import SETTING, Level

MANIFEST = "bridge.toml"
FOLDER = "bridges"
METER_MANIFEST, INTERFACE = "meter.toml", "interface"
EVIDENCE = ("records", "counters")
REQUIRED = ("inner", "outer", "language", "evidence")
BRIDGE_KEYS: dict[str, Any] = {
    "title": str, "summary": str, "inner": str, "outer": str, "inner_cell": str, "language": str,
    "evidence": str, "listens": bool, "payload_bytes_max": int, "inner_frames": str,
    "capabilities": manifest.WORDS,
    "inputs": manifest.WORDS, "requires": manifest.WORDS,
    "settings": {"*": None}, "outer_settings": {"*": None}, "settable": manifest.WORDS,
    "build": manifest.BUILD_KEYS, "run": manifest.RUN_KEYS,
}  # fmt: skip


@dataclass(frozen=True)
class Bridge(Cell):
    """The program of a bridge. As a cell, its middleware is the one inside each host.

    `inner_folder` is the cell of the inner middleware whose modules the program imports, or None.
    """

    outer: Middleware = field(kw_only=True)
    inner_folder: Path | None = field(default=None, kw_only=True)

    @property
    def title(self) -> str:
        return str(self.document.get("title", self.folder.name))

    @property
    def roles(self) -> list[str]:
        return [RELAYED]

    @property
    def setting_tables(self) -> dict[str, dict[str, Any]]:
        outer = OUTER_SETTING.removeprefix(SETTING)
        return {
            **self.middleware.settings,
            END_SETTING.removeprefix(SETTING): {"type": "string", "allowed": [ENTRY, EXIT]},
            **{f"{outer}{name}": self.outer.settings[name] for name in self.end_settings},
        }

    @property
    def exit_listens(self) -> bool:
        """Return whether the exit accepts the connection of the entry.

        Otherwise both ends connect to a service process of the outer middleware.
        """
        listens = bool(self.document.get("listens", False))
        return listens and not self.outer.services_for(self.outer_settings)

    @property
    def payload_bytes_max(self) -> int | None:
        value: int | None = self.document.get("payload_bytes_max")
        return value

    @property
    def inner_frames(self) -> str:
        """Return the quantity that counts the inner middleware's frames on a network, or ""."""
        return str(self.document.get("inner_frames", ""))

    def inner_settings(self, given: Mapping[str, Level]) -> dict[str, Level]:
        """Return the settings of the nodes: those of the bridge, below those of the treatment."""
        return {**self.document.get("settings", {}), **given}

    @property
    def outer_settings(self) -> dict[str, Level]:
        """Return all settings of the outer middleware."""
        return self.outer.effective_settings(self.document.get("outer_settings", {}))

    @property
    def end_settings(self) -> dict[str, Level]:
        """Return the settings of the outer middleware that the bridge processes receive."""
        return {name: self.outer_settings[name] for name in self.document.get("settable", [])}


def read_bridge(
    path: Path, middleware: Mapping[str, Middleware], meters: Mapping[str, Path]
) -> dict[str, Any]:
    """Return the checked document of a manifest. Raises UsageError with the key and the remedy."""
    document = manifest.read_toml(path)
    manifest.check_keys(document, BRIDGE_KEYS, str(path))
    for key in REQUIRED:
        if key not in document:
            raise UsageError(f"{path}: {key}: found nothing; allowed: a string. Add the key.")
    for key in ("inner", "outer"):
        if document[key] not in middleware:
            raise unknown(f"{path}: {key}", "middleware", document[key], middleware)
    if document["inner"] == document["outer"]:
        raise UsageError(
            f"{path}: outer: found {document['outer']!r}, which is also inner; allowed: another "
            "middleware, because a bridge joins two. Without a bridge, the nodes send to the "
            "other hosts themselves."
        )
    for name in document.get("settable", []):
        settings = middleware[document["outer"]].settings
        if name not in settings:
            raise unknown(f"{path}: settable", "setting", name, settings)
        if "allowed" not in settings[name] and settings[name]["type"] != "boolean":
            raise UsageError(
                f"{path}: settable: found {name}, which has no list of levels; allowed: settings "
                "that are booleans or have `allowed`, because `wattwire check bridges` checks "
                "each level"
            )
    if document["evidence"] not in EVIDENCE:
        raise UsageError(
            f"{path}: evidence: found {document['evidence']!r}; allowed: {', '.join(EVIDENCE)}"
        )
    if document["evidence"] != EVIDENCE[0]:
        raise UsageError(
            f"{path}: evidence: found {document['evidence']!r}; this version runs only bridges "
            f"that leave {EVIDENCE[0]}, because each bridge process is a hop"
        )
    _check_inner_frames(path, document, meters)
    return document


def _check_inner_frames(
    path: Path, document: Mapping[str, Any], meters: Mapping[str, Path]
) -> None:
    """Raise UsageError unless `inner_frames` is absent or counts something on each interface."""
    if "inner_frames" not in document:
        return
    counters = [
        quantity["name"]
        for folder in meters.values()
        if (folder / METER_MANIFEST).exists()
        for quantity in manifest.read_toml(folder / METER_MANIFEST).get("quantity", [])
        if quantity.get("counter") and quantity.get("scope") == INTERFACE
    ]
    if document["inner_frames"] not in counters:
        raise unknown(f"{path}: inner_frames", "counter", document["inner_frames"], counters)
