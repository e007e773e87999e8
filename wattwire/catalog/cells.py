"""Define the middleware and cells of the catalogue, with their merged manifests."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wattwire.catalog.services import needed
from wattwire.model.deployment import MEMBER, PATTERNS
from wattwire.model.errors import UsageError, unknown
from wattwire.model.setting_purposes import SECURED, SECURITY
from wattwire.model.treatment import PAYLOAD_BYTES_MAX, Level

SETTING_TYPES: dict[str, type] = {"string": str, "integer": int, "boolean": bool}
REACHES = ("network", "host")
"""Extent of a middleware's messages: between hosts, or only within one host."""
REPLIES_TOLD_BY = ("number", "sequence")
"""Identification of replies, either by the middleware's call number or only by sequence number."""


MEMBERS = "members"
"""Capability of cells that have the role MEMBER (C-41)."""
DECLARED = "declared."
"""Prefix of the keys of a spec with what the manifests declare (C-03)."""


def has_type(value: object, required: type) -> bool:
    return isinstance(value, required) and (required is bool or not isinstance(value, bool))


@dataclass(frozen=True)
class Middleware:
    """A middleware and its parsed manifest."""

    name: str
    folder: Path
    document: dict[str, Any]

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        return self.document.get("settings", {})

    @property
    def services(self) -> dict[str, dict[str, Any]]:
        return self.document.get("services", {})

    def services_for(self, settings: Mapping[str, Level]) -> dict[str, dict[str, Any]]:
        """Return the services that a treatment needs, from its settings without defaults."""
        given = self.effective_settings(settings)
        return needed(self.services, given, self.is_secured(given))

    def is_secured(self, settings: Mapping[str, Level]) -> bool:
        """Return whether nodes with these settings are secured (C-43)."""
        name = self.setting_with(SECURITY)
        return name is not None and settings.get(name) == SECURED

    @property
    def security_documents(self) -> dict[str, str]:
        """Return the texts that the authority of a run signs, by spec key (C-43)."""
        table: dict[str, str] = self.document.get(SECURITY, {})
        return {f"{SECURITY}.{name}": text for name, text in table.items()}

    @property
    def environment(self) -> dict[str, Any] | None:
        return self.document.get("environment")

    @property
    def reach(self) -> str:
        """Return how far messages travel, a value of REACHES."""
        reach: str = self.document.get("reach", REACHES[0])
        return reach

    def has_error_replies(self, pattern: str) -> bool:
        """Return whether servers reply with an error to a call that they must not serve (C-36)."""
        error_replies: bool = (
            self.document.get("patterns", {}).get(pattern, {}).get("error_replies", False)
        )
        return error_replies

    def listens(self, pattern: str, settings: Mapping[str, Level] | None = None) -> str:
        """Return the role that listens in a pattern with these settings.

        It is "none" if the roles discover each other, or connect only to a service (`hub`).
        """
        if any(table.get("hub") for table in self.services_for(settings or {}).values()):
            return "none"
        return self.document.get("patterns", {}).get(pattern, {}).get("listens", "none")

    def replies_told_by(self, pattern: str) -> str:
        """Return how replies to overlapping calls are matched (C-33).

        The result is a value of REPLIES_TOLD_BY.
        """
        table = self.document.get("patterns", {}).get(pattern, {})
        return table.get("replies_told_by", REPLIES_TOLD_BY[0])

    def setting_with(self, purpose: str) -> str | None:
        """Return the name of the first setting with a purpose of SETTING_PURPOSES, or None."""
        return next((n for n, t in self.settings.items() if t.get("purpose") == purpose), None)

    def effective_settings(self, given: Mapping[str, Level]) -> dict[str, Level]:
        """Return all settings, with defaults filled in. Raises UsageError for invalid settings."""
        for name, value in given.items():
            if name not in self.settings:
                raise unknown(f"middleware {self.name}", "setting", name, self.settings)
            self._check_setting(name, value)
        return {name: given.get(name, table["default"]) for name, table in self.settings.items()}

    def _check_setting(self, name: str, value: Level) -> None:
        table = self.settings[name]
        required = SETTING_TYPES[table["type"]]
        message = f"middleware {self.name}: setting {name}: found {value!r}; allowed: "
        if "allowed" in table and value not in table["allowed"]:
            raise UsageError(message + ", ".join(map(repr, table["allowed"])))
        if not has_type(value, required):
            raise UsageError(message + f"{table['type']}")
        bounds = [f"{name} {table[name]}" for name in ("minimum", "maximum") if name in table]
        if value < table.get("minimum", value) or value > table.get("maximum", value):
            raise UsageError(message + ", ".join(bounds))


@dataclass(frozen=True)
class Cell:
    """The implementation of one middleware in one language."""

    name: str
    folder: Path
    language: str
    language_folder: Path | None
    middleware: Middleware
    document: dict[str, Any] = field(hash=False)
    variant: str = ""
    """The variant of the study whose root contains the cell. Several variants may have a cell of
    the same name.
    """
    imported_folder: Path | None = None
    """The folder of another cell, whose modules this cell imports, or None."""
    wrapped_kit: Path | None = None
    """The folder of the kit that the kit of the cell's language wraps, or None."""

    @property
    def known_as(self) -> str:
        """Return the cell's name, prefixed with its variant. It is unique in a campaign."""
        return f"{self.variant}: {self.name}" if self.variant else self.name

    @property
    def roles(self) -> list[str]:
        """Return the roles of the cell's patterns."""
        known = [pattern for pattern in PATTERNS.values() if self._supports(pattern.contract)]
        roles = [role for pattern in known for role in pattern.path]
        if MEMBERS in self.document["capabilities"]:
            roles.append(MEMBER)
        return list(dict.fromkeys(roles))

    def _supports(self, pattern: str) -> bool:
        return pattern in self.document["patterns"]

    @property
    def setting_tables(self) -> dict[str, dict[str, Any]]:
        """Return name → manifest of each setting of a node, with the values that it supports."""
        own = self.document.get("settings", {})
        return {name: {**t, **own.get(name, {})} for name, t in self.middleware.settings.items()}

    @functools.cached_property
    def declared(self) -> dict[str, Any]:
        """Return the keys `declared.*` of the specs of this program's nodes (C-03)."""
        bytes_max = self.document.get("payload_bytes_max", PAYLOAD_BYTES_MAX)
        tables = self.setting_tables
        values = {
            "roles": self.roles,
            "capabilities": self.document["capabilities"],
            "payload_bytes_min": self.document.get("payload_bytes_min", 0),
            "payload_bytes_max": bytes_max,
            "record_bytes_max": self.document.get("record_bytes_max", bytes_max),
        }
        for kind in SETTING_TYPES:
            names = [name for name, table in tables.items() if table["type"] == kind]
            values[f"{kind}_settings"] = names
        levels = {name: table["allowed"] for name, table in tables.items() if "allowed" in table}
        values.update({f"allowed.{name}": allowed for name, allowed in levels.items()})
        return {f"{DECLARED}{name}": value for name, value in values.items()}

    @property
    def settings_allowed(self) -> dict[str, list[Level]]:
        """Return the supported values of each setting that this cell supports only in part."""
        tables = self.document.get("settings", {})
        return {name: table["allowed"] for name, table in tables.items() if "allowed" in table}

    @property
    def first_settings(self) -> dict[str, Level]:
        """Return all settings at their defaults, or at the first value that the cell supports."""
        defaults = self.middleware.effective_settings({})
        unsupported = {
            name: allowed[0]
            for name, allowed in self.settings_allowed.items()
            if defaults[name] not in allowed
        }
        return {**defaults, **unsupported}

    @property
    def layer_gap(self) -> str | None:
        """Return the reason why no layers of this cell's messages can be recorded, else None."""
        absent: str | None = self.document.get("layers", {}).get("absent")
        return absent and f"{self.name} has no layers, because {absent}"

    @property
    def emulated(self) -> dict[str, Any]:
        """Return the emulated device that answers for this cell's server; {} if none is."""
        table: dict[str, Any] = self.document.get("emulated", {})
        return table

    def gap(
        self,
        pattern: str,
        needs: Sequence[str],
        payload_bytes: int | None = None,
        settings: Mapping[str, Level] | None = None,
    ) -> str | None:
        """Return the reason that this cell cannot execute a treatment, or None if it can."""
        if pattern not in self.document["patterns"]:
            available = ", ".join(self.document["patterns"]) or "none"
            return f"{self.name} does not support the pattern {pattern} (supported: {available})"
        missing = [need for need in needs if need not in self.document["capabilities"]]
        if missing:
            noun = "capability" if len(missing) == 1 else "capabilities"
            return f"{self.name} lacks the {noun} {', '.join(missing)}"
        payload_bytes_max = self.document.get("payload_bytes_max")
        if "encoding.record" in needs:
            payload_bytes_max = self.document.get("record_bytes_max", payload_bytes_max)
        if payload_bytes_max is not None and (payload_bytes or 0) > payload_bytes_max:
            return f"{self.name} carries at most {payload_bytes_max} bytes, not {payload_bytes}"
        payload_bytes_min = self.document.get("payload_bytes_min", 0) * (
            2 if "encoding.text" in needs else 1
        )
        if (
            payload_bytes is not None
            and payload_bytes < payload_bytes_min
            and "literal" not in needs
        ):
            return f"{self.name} carries at least {payload_bytes_min} bytes, not {payload_bytes}"
        for name, allowed in self.settings_allowed.items():
            if settings and settings.get(name, allowed[0]) not in allowed:
                available = ", ".join(map(repr, allowed))
                return (
                    f"{self.name} does not support {name} = {settings[name]!r} "
                    f"(supported: {available})"
                )
        return None
