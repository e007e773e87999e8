"""Enforce the table of permitted imports between packages in ARCHITECTURE.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "wattwire"
ENTRY_POINTS = frozenset({"__init__", "__main__"})
_ROW = re.compile(r"^\| `(?P<layer>[a-z_]+)/?` \| (?P<allowed>[^|]*) \|", re.MULTILINE)


def read_layers(architecture: str) -> dict[str, frozenset[str]]:
    """Return package → packages that it may import, from rows such as "| `store` | model |"."""
    table = {}
    for row in _ROW.finditer(architecture):
        words = re.findall(r"[a-z_]+", row["allowed"])
        table[row["layer"]] = frozenset(words) - {"nothing"}
    if "all" in table.get("cli", ()):
        table["cli"] = frozenset(table) - {"cli"}
    return table


def is_test(path: Path) -> bool:
    """Return whether a module is a test, which may import from any layer."""
    return path.name.startswith("test_") or path.name == "conftest.py" or "tests" in path.parts


def layer_problems(path: Path, source: str, layers: dict[str, frozenset[str]]) -> list[str]:
    """Return the problems with the imports of a module; `path` is wattwire/LAYER/….py."""
    parts = path.with_suffix("").parts
    if is_test(path):
        return []
    if len(parts) == 2:
        if parts[1] not in ENTRY_POINTS:
            return [f"{path}: a module outside the packages; move it into one of {_names(layers)}"]
        return []
    layer = parts[1]
    if layer not in layers:
        return [f"{path}: package {layer} is not in ARCHITECTURE.md's table of layers; add it"]
    problems = []
    for line, other in _imports(path, ast.parse(source)):
        if other != layer and other not in layers[layer]:
            allowed = _names(layers[layer]) or "nothing of ours"
            problems.append(f"{path}:{line}: {layer} imports {other}; allowed: {allowed}")
    return problems


def _names(words: object) -> str:
    return ", ".join(sorted(words))  # type: ignore[call-overload]


def _imports(path: Path, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, package) of each import from this repository, with relative imports resolved."""
    for line, module in _modules(path, tree):
        words = module.split(".")
        if words[0] == PACKAGE and len(words) > 1 and not words[1].startswith("__"):
            yield line, words[1]


def _modules(path: Path, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, module) of each import, with relative imports resolved.

    A name that is imported from the package itself is a module.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = path.parts[: len(path.parts) - node.level]
                base = ".".join((*above, *([base] if base else [])))
            modules = [base]
            if base == PACKAGE:
                modules = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for module in modules:
            yield node.lineno, module
