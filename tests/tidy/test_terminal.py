"""Test that one module wraps texts and aligns columns for all commands."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.layers import is_test
from tests.tidy.tree import ROOT

RENDERER = "wattwire/cli/wrap.py"
OTHER_RENDERERS = frozenset({"textwrap", "rich.table", "rich.columns"})
ALIGNING = frozenset({"ljust", "rjust", "center"})


def renderer_problems(path: str, source: str) -> Iterator[str]:
    """Yield each import of another renderer and each call that aligns a text."""
    for node in ast.walk(ast.parse(source)):
        names: set[str] = set()
        if isinstance(node, ast.Import):
            names = {alias.name for alias in node.names} & OTHER_RENDERERS
        elif isinstance(node, ast.ImportFrom):
            names = {node.module or ""} & OTHER_RENDERERS
        elif isinstance(node, ast.Attribute):
            names = {node.attr} & ALIGNING
        if names:
            line = getattr(node, "lineno", 1)
            yield f"{path}:{line}: {', '.join(names)}; use pairs() or table() of {RENDERER}"


def test_one_module_formats_the_lines_of_all_commands() -> None:
    paths = [path.relative_to(ROOT) for path in sorted((ROOT / "wattwire/cli").rglob("*.py"))]
    commands = [path for path in paths if not is_test(path) and str(path) != RENDERER]
    assert len(commands) > 30
    problems = [
        problem
        for path in commands
        for problem in renderer_problems(str(path), (ROOT / path).read_text(encoding="utf-8"))
    ]
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize(
    "source", ["import textwrap", "def f():\n    from rich.table import Table", "x = 'a'.ljust(9)"]
)
def test_a_planted_renderer_is_found(source: str) -> None:
    assert len(list(renderer_problems("wattwire/cli/x.py", source))) == 1
