"""One combination of factor levels."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Level = str | int | float | bool

PATTERN_ROLES: dict[str, tuple[str, str]] = {
    "topic": ("publisher", "subscriber"),
    "service": ("server", "client"),
    "action": ("action_server", "action_client"),
    "pingpong": ("pong", "ping"),
}
"""Pattern → (the one hub role, the role that there are `clients` of)."""

SENDING_ROLES = frozenset({"publisher", "client", "action_client", "ping"})


@dataclass(frozen=True)
class Treatment:
    """Levels of the varied factors (`varied`) and all levels, fixed ones included (`levels`)."""

    varied: tuple[tuple[str, Level], ...]
    levels: tuple[tuple[str, Level], ...]

    @staticmethod
    def of(varied: Mapping[str, Level], fixed: Mapping[str, Level]) -> Treatment:
        return Treatment(tuple(varied.items()), tuple(sorted({**fixed, **varied}.items())))

    def __getitem__(self, key: str) -> Level:
        for name, level in self.levels:
            if name == key:
                return level
        raise KeyError(key)

    def get(self, key: str, default: Any = None) -> Any:
        return dict(self.levels).get(key, default)

    @property
    def settings(self) -> dict[str, Level]:
        """The `settings.NAME` levels, by NAME."""
        return {k.removeprefix("settings."): v for k, v in self.levels if k.startswith("settings.")}

    @property
    def key(self) -> str:
        """A short stable name of the treatment: a hash of all its levels."""
        text = json.dumps(self.levels, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def label(self) -> str:
        """The varied levels in words, for people."""
        return " ".join(f"{k}={v}" for k, v in self.varied) or "the only treatment"
