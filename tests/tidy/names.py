"""Check that closed code does not name members of open folders."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.tidy.tokens import tokenise

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]


PLAIN = frozenset({"rest"})
"""Names of folders that are ordinary words, which any code may use."""


def open_names_in(path: Path, source: str, names: frozenset[str]) -> list[str]:
    """Return a problem for each string or identifier in `source` that equals one of `names`.

    A path in a string is split at its slashes, so that `NAME/cpp` also matches. A name that is an
    ordinary word matches only in strings.
    """
    problems, of_identifiers = [], names - PLAIN
    for line, word, is_text in _words(path, source):
        parts = word.lower().split("/")
        if len(parts) > 1 and any(map(str.isspace, word)):  # a sentence is no path
            continue
        for name in sorted((names if is_text else of_identifiers).intersection(parts)):
            problems.append(
                f'{path}:{line}: closed code names "{name}", which is a folder\'s name; find it '
                "through the catalogue, or choose a more distinctive word"
            )
    return problems


def _words(path: Path, source: str) -> Iterator[tuple[int, str, bool]]:
    """Yield (line, word, whether it is a string) of each string and identifier."""
    if path.suffix == ".py":
        yield from _python_words(ast.parse(source))
    elif path.suffix in (".toml", ".json"):
        document = tomllib.loads(source) if path.suffix == ".toml" else json.loads(source)
        yield from ((1, word, True) for word in _data_words(document))
    else:
        for token in tokenise(source):
            if token.kind != "mark":
                yield token.line, token.text, token.kind == "string"


def _python_words(tree: ast.AST) -> Iterator[tuple[int, str, bool]]:
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 1)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield line, node.value, True
        elif isinstance(node, ast.Constant) and isinstance(node.value, bytes):
            yield line, node.value.decode("latin-1"), True
        elif isinstance(node, ast.Name):
            yield line, node.id, False
        elif isinstance(node, ast.Attribute):
            yield line, node.attr, False
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.alias)):
            yield from ((line, part, False) for part in node.name.split("."))
            if isinstance(node, ast.alias) and node.asname:
                yield line, node.asname, False
        elif isinstance(node, (ast.arg, ast.keyword)) and node.arg:
            yield line, node.arg, False


def _data_words(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _data_words(item)
    elif isinstance(value, list):
        for item in value:
            yield from _data_words(item)
    elif isinstance(value, str):
        yield value
