"""Treatments, which are combinations of factor levels."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wattwire.model.words import as_typed

Level = str | int | float | bool
PAYLOAD_BYTES_MAX = 67_108_864
"""Longest payload of the contract, in bytes."""
EACH = "each"
"""Level of a factor that represents all names of the run's rig."""
SETTING = "settings."
OUTER_SETTING = "outer_settings."
"""Prefixes of the factors that are settings of the nodes' middleware, and of the middleware between
the hosts that a bridge joins with it."""


def is_setting(factor: str) -> bool:
    """Return whether a factor is a setting of a middleware."""
    return factor.startswith((SETTING, OUTER_SETTING))


def are_numbers(levels: Iterable[Any]) -> bool:
    """Return whether all levels are numbers; True and False are none."""
    return all(isinstance(level, (int, float)) and not isinstance(level, bool) for level in levels)


@dataclass(frozen=True)
class Treatment:
    """A treatment with the levels of its varied factors and the levels of all its factors."""

    varied: tuple[tuple[str, Level], ...]
    levels: tuple[tuple[str, Level], ...]

    @staticmethod
    def of(varied: Mapping[str, Level], fixed: Mapping[str, Level]) -> Treatment:
        """Return the treatment with these levels. A varied level overrides the fixed level."""
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
        """Return the levels of `settings.NAME` factors (NAME → level)."""
        return self._with_prefix(SETTING)

    @property
    def outer_settings(self) -> dict[str, Level]:
        """Return the levels of `outer_settings.NAME` factors (NAME → level)."""
        return self._with_prefix(OUTER_SETTING)

    def _with_prefix(self, prefix: str) -> dict[str, Level]:
        return {k.removeprefix(prefix): v for k, v in self.levels if k.startswith(prefix)}

    @property
    def key(self) -> str:
        """Return a short, stable identifier, which is a hash of all levels."""
        text = json.dumps(self.levels, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def label(self) -> str:
        """Return the varied levels as text for readers, as `--only` accepts them."""
        return " ".join(f"{k}={as_typed(v)}" for k, v in self.varied) or "the only treatment"


def shared_levels(treatments: Sequence[Mapping[str, Level]]) -> dict[str, Level]:
    """Return the levels that all these treatments (factor → varied level) have in common."""
    first = treatments[0]
    return {n: v for n, v in first.items() if all(t.get(n) == v for t in treatments)}
