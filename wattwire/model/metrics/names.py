"""Find the metric of a name, a synonym or a column, and check the names that a study uses."""

from __future__ import annotations

import re
from collections.abc import Iterable

from wattwire.model.deployment import ROLES
from wattwire.model.errors import UsageError, nearest
from wattwire.model.flows import COLUMN
from wattwire.model.metrics.metric import COUNTER, NODE, PRINTED, SYSTEM_CALLS, Metric
from wattwire.model.metrics.printed_figures import printed
from wattwire.model.metrics.registry import METRICS, OF_FLOWS, REGISTRY

_COUNTER = re.compile(r"[A-Za-z][\w-]*\.[A-Za-z][\w-]*", re.ASCII)
"""SERVICE.COUNTER at the end of a column."""


def find(name: str) -> Metric | None:
    """Return the metric with a name, synonym, or column of a node or flow; None if it is unknown.

    Synonyms take precedence. For example, "memory_kib" is the memory per node, although nodes have
    columns with this name.
    """
    for metric in REGISTRY:
        if metric.also and re.fullmatch(metric.also, name):
            return metric
    of_flow = COLUMN.fullmatch(name)
    if of_flow:
        return METRICS[of_flow["stem"]] if of_flow["stem"] in OF_FLOWS else None
    stem, dot, node = name.partition(".")
    metric_of_column = METRICS.get(stem)
    if metric_of_column is None or not metric_of_column.is_number:
        return None
    if not dot:
        return metric_of_column
    if metric_of_column.of == COUNTER:
        return metric_of_column if _COUNTER.fullmatch(node) else None
    if metric_of_column.of == PRINTED:
        return printed(node)
    return metric_of_column if metric_of_column.of == NODE and _is_node(node) else None


def _is_node(suffix: str) -> bool:
    """Return whether `suffix` is `ROLE.INDEX` or the name of a service process."""
    role, dot, index = suffix.partition(".")
    if dot:
        return role in ROLES and index.isdecimal()
    return role not in ROLES and re.fullmatch(r"[A-Za-z][\w-]*", role) is not None


def check_response(name: str, place: str) -> Metric:
    """Return the metric of a response, which has one number per run.

    Raises UsageError for an unknown name, for a metric of system calls, and for a metric of nodes
    without a node, because a run has several numbers for it.
    """
    metric = check_name(name, place)
    if metric.needs == SYSTEM_CALLS:
        raise UsageError(
            f"{place}: only {SYSTEM_CALLS} measure {name}, and answers do not use these runs. "
            f"Put {name} in a question's `beside` or in a [[table]]."
        )
    if metric.of == COUNTER and "." not in name:
        raise UsageError(
            f"{place}: {name} has a value per counter of a service, not per run. Add both, for "
            f"example {name}.SERVICE.COUNTER; the page lists the names."
        )
    if metric.of == PRINTED and "." not in name:
        raise UsageError(f"{place}: name the figure, for example {name}.p50_ms")
    if metric.of == NODE and "." not in name:
        raise UsageError(
            f"{place}: {name} has a value per node, not per run. Add the node, for example "
            f"{name}.{next(iter(ROLES))}.0. To use the sum over the nodes, put {name} in a "
            "question's `beside` or in a [[table]]."
        )
    return metric


def check_name(name: str, place: str) -> Metric:
    """Return the metric `name`. Raises UsageError with the most similar known name."""
    metric = find(name)
    if metric is None and ".hop." in name:
        raise UsageError(
            f"{place}: {name} is a column of one hop, which only a [[figure]] of the kind "
            "“stacked” can show. The page has a table of the latency and losses of each hop."
        )
    if metric is None:
        # A list of sixty names is hard to read, so it is printed only without a similar name.
        similar = _suggested_column(name) or suggestion(name)
        hint = similar or f" Known: {', '.join(sorted(known_names()))}."
        raise UsageError(f'{place}: unknown response "{name}".{hint}')
    return metric


def _suggested_column(name: str) -> str:
    """Return ` Did you mean "x"?` for a column of a flow or a node with a misspelt metric."""
    stem, dot, rest = name.partition(".")
    is_flow = bool(COLUMN.fullmatch(name))
    known = OF_FLOWS if is_flow else [metric.name for metric in REGISTRY if metric.of == NODE]
    if not dot or not stem:
        return ""
    longer = next((known_name for known_name in sorted(known) if known_name.startswith(stem)), "")
    similar = f' Did you mean "{longer}"?' if longer else suggestion(stem, known)
    return similar.replace('"?', f'.{rest}"?')


def known_names() -> list[str]:
    """Return the names of the metrics that can be responses, in the order of the registry."""
    return [metric.name for metric in REGISTRY if metric.is_number]


def suggestion(name: str, known: Iterable[str] = ()) -> str:
    """Return ` Did you mean "x"?` for the most similar known name.

    If no name is similar, suggest the first name that contains `name` as a part (p99). The result
    is "" if there is no such name.
    """
    names = list(known) or known_names()
    close = nearest(name, names)
    if close:
        return close
    names_with_part = [known_name for known_name in names if name.lower() in known_name.split("_")]
    return f' Did you mean "{names_with_part[0]}"?' if names_with_part else ""
