"""Find the topics of a report: one folder each, with its numbers, its words and its tests.

No file lists the topics. Adding or removing a topic changes only its own folder.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from wattwire.analysis.dataset import Evidence


@dataclass(frozen=True)
class Topic:
    """A topic of the report, named like its folder.

    `compute` returns the topic's result, a frozen dataclass with everything that its templates
    print. `stored` returns a result as JSON values, for the key of analysis.json that is named like
    the topic. `place` is the position of its section on the page.
    """

    place: int
    compute: Callable[[Evidence], Any]
    stored: Callable[[Any], Any]


@cache
def topics() -> Mapping[str, Topic]:
    """Return the TOPIC of every folder here by the folder's name."""
    return {
        module.name: importlib.import_module(f"{__name__}.{module.name}").TOPIC
        for module in pkgutil.iter_modules(__path__)
    }
