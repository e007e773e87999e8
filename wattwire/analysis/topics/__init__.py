"""Find the topics of a report: one folder each, with its numbers, its words and its tests.

No file lists the topics. Adding or removing a topic changes only its own folder.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from typing import Any

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.latency import Series

GIVEN = ("contrasts",)
"""Results that topics use and that no topic computes: the contrasts of the study's questions."""


def nothing(_result: Any) -> Mapping[str, Any]:
    """Return no keys, for a topic that is not in analysis.json."""
    return {}


@dataclass(frozen=True)
class Topic:
    """A topic of the report, named like its folder.

    `compute` returns the topic's result, a frozen dataclass with everything that its templates
    print. If the topic `needs_series`, the function's second argument is the series of latencies of
    each valid run. The results of the topics in `uses` are its last arguments, in their order.
    `stored` returns the result's part of analysis.json, as JSON values by key. If the topic
    `is_for_page`, commands that print no page do not compute it.

    `place` is the position of the topic's section on the page. If the topic joins another section,
    `section` is the id of that section or of a text of a bundle, and `place` is the position of the
    topic's parts in it. A topic that prints only lines at the top of the page has no place.
    """

    compute: Callable[..., Any]
    place: int | None = None
    section: str = ""
    stored: Callable[[Any], Mapping[str, Any]] = nothing
    needs_series: bool = False
    is_for_page: bool = False
    uses: tuple[str, ...] = ()

    @property
    def place_of_parts(self) -> int:
        """The place of a part that states none: that of the topic if it joins another section."""
        return self.place or 0 if self.section else 0

    def result(
        self, evidence: Evidence, series: Mapping[str, Series], results: Mapping[str, Any]
    ) -> Any:
        """Return the topic's result.

        `series` maps each valid run to its latencies, `results` the name of each topic that this
        one uses to its result.
        """
        arguments = [series] if self.needs_series else []
        return self.compute(evidence, *arguments, *(results[name] for name in self.uses))


@cache
def topics() -> Mapping[str, Topic]:
    """Return the TOPIC of every folder here by the folder's name, after the topics that it uses.

    A topic without this name is in no report: a command prints it alone. Raises CycleError if
    topics use each other, and KeyError if a topic uses one that does not exist.
    """
    modules = {
        module.name: importlib.import_module(f"{__name__}.{module.name}")
        for module in pkgutil.iter_modules(__path__)
    }
    by_name = {name: module.TOPIC for name, module in modules.items() if hasattr(module, "TOPIC")}
    order = TopologicalSorter({name: topic.uses for name, topic in by_name.items()})
    return {name: by_name[name] for name in order.static_order() if name not in GIVEN}
