"""Test that all metrics that code names are registered.

A misspelt name reads a column that no run has. When a metric is removed from the registry, this
test lists the places that still read it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.layers import is_test
from tests.tidy.tree import texts
from wattwire.model.metrics import METRICS, PROCESS_COLUMNS

KNOWN = METRICS.keys() | PROCESS_COLUMNS.keys()
READERS = frozenset({"column", "members", "after_warmup", "resolve", "response_of"})
"""Functions that take the name of a metric or of its column."""


def name_problems(path: str, source: str) -> Iterator[str]:
    """Yield each name of a metric in a module that the registry lacks."""
    for item in ast.walk(ast.parse(source)):
        for name in _metric_names(item):
            if name.partition(".")[0] not in KNOWN:
                yield f"{path}:{getattr(item, 'lineno', 0)}: no metric has the name {name}"


def _metric_names(item: ast.AST) -> list[str]:
    """Return the names of metrics in an expression: an argument, an index, or a list of metrics."""
    if isinstance(item, ast.Call) and isinstance(item.func, ast.Name) and item.func.id in READERS:
        return _strings(item.args)[:1]
    if isinstance(item, ast.Subscript) and isinstance(item.value, ast.Name):
        return _strings([item.slice]) if item.value.id == "METRICS" else []
    if isinstance(item, (ast.Tuple, ast.List, ast.Set)):
        return _listed_metrics(_strings(item.elts))
    return []


def _listed_metrics(names: list[str]) -> list[str]:
    """Return the strings of a list if most of them are metrics; else nothing.

    Names without an underscore are also words of other lists.
    """
    known = [name for name in names if name in KNOWN]
    is_list = len([name for name in known if "_" in name]) > 1 and 2 * len(known) > len(names)
    return names if is_list else []


def _strings(nodes: list[ast.expr]) -> list[str]:
    return [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def test_every_metric_that_code_names_is_registered() -> None:
    problems = [
        problem
        for path, text in texts()
        if path.parts[0] == "wattwire" and path.suffix == ".py" and not is_test(path)
        for problem in name_problems(str(path), text)
    ]
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize(
    "source",
    [
        'DEFAULTS = ("cpu_us_per_message", "wire_bytes_per_message", "system_calls_per_message")',
        'lost = column(frame, "lost_messages")',
        'LATENCY = resolve("latency_p98_us")',
        'METRICS["latency"]',
    ],
)
def test_a_planted_name_is_found(source: str) -> None:
    assert len(list(name_problems("wattwire/analysis/x.py", source))) == 1


def test_registered_names_and_other_lists_are_no_problem() -> None:
    source = (
        'cpu = column(frame, "cpu_share.broker")\nSTATES = ("failed", "skipped", "passed")\n'
        'LIMITS = ("stall_ms_max", "stall_max_ms", "stall")\nfirst = row["latency"]\n'
    )
    assert not list(name_problems("wattwire/analysis/x.py", source))
