"""Check tables of phrases (wattwire/report/words/phrases.py) statically.

A wrong key or value would raise an error only when its branch is reached, possibly on a user's
page.
"""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

TABLE = "PHRASES"
SEARCHES = frozenset({"only", "phrases_in"})
"""Functions of wattwire/report/tests/phrase_search.py that take a key after what they search."""


@dataclass(frozen=True)
class Table:
    """The table of a file: its name, and the placeholders of each key."""

    name: str
    placeholders: dict[str, frozenset[str]]


def table_of(path: Path, source: str) -> tuple[Table | None, list[str]]:
    """Return the table of phrases of a file, and the problems of its form."""
    problems: list[str] = []
    found: list[Table] = []
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and _name(node.func) == "Phrases"):
            continue
        match node.args:
            case [ast.Constant(value=str(name)), ast.Dict(keys=keys, values=texts)]:
                found.append(Table(name, _placeholders(keys, texts)))
                if len(found[-1].placeholders) < len(keys):
                    problems.append(f"{path}:{node.lineno}: a key twice, or one that is no text")
            case _:
                problems.append(f'{path}:{node.lineno}: write Phrases("name", {{"key": "text"}})')
    if len(found) > 1:
        problems.append(f"{path}: {len(found)} tables of phrases; allowed: one, {TABLE}")
    return (found[0] if found else None), problems


def _placeholders(
    keys: Sequence[ast.expr | None], texts: Sequence[ast.expr]
) -> dict[str, frozenset[str]]:
    return {
        key.value: frozenset(
            name for _, name, _, _ in string.Formatter().parse(text.value) if name is not None
        )
        for key, text in zip(keys, texts, strict=True)
        if isinstance(key, ast.Constant)
        and isinstance(text, ast.Constant)
        and isinstance(key.value, str)
        and isinstance(text.value, str)
    }


def use_problems(path: Path, source: str, table: Table | None) -> list[str]:
    """Check that every key is used, and that calls match the keys and values of their table."""
    tree = ast.parse(source)
    problems, used, calls = [], set(), set()
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and _name(node.func) == TABLE):
            continue
        calls.add(id(node.func))
        given = frozenset(keyword.arg or "**" for keyword in node.keywords)
        keys = list(_keys(node.args[0])) if len(node.args) == 1 else []
        if not keys or None in keys:
            problems.append(f"{path}:{node.lineno}: {TABLE} takes a key written out, then values")
        for key in filter(None, keys):
            used.add(key)
            expected = table.placeholders.get(key) if table else None
            if expected is None:
                problems.append(f'{path}:{node.lineno}: no phrase "{key}" in this file\'s table')
            elif expected != given:
                problems.append(
                    f'{path}:{node.lineno}: "{key}" has the placeholders {sorted(expected)}, '
                    f"given are {sorted(given)}"
                )
    for node in ast.walk(tree):
        is_read = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        is_borrowed = isinstance(node, ast.alias) and node.name == TABLE
        if (is_read and node.id == TABLE and id(node) not in calls) or is_borrowed:
            problems.append(f"{path}: {TABLE} is called in its own file and used nowhere else")
    unused = sorted(set(table.placeholders) - used) if table else []
    return problems + [f'{path}: the phrase "{key}" is never used; delete it' for key in unused]


def _keys(node: ast.expr) -> Iterator[str | None]:
    """Yield the keys that an argument may have; None for a key that is not a literal."""
    if isinstance(node, ast.IfExp):
        yield from _keys(node.body)
        yield from _keys(node.orelse)
    else:
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        yield node.value if is_text else None  # type: ignore[union-attr]


def asserted_keys(source: str, tables: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Yield the line and key of each phrase that a test searches for or compares with.

    Other values may also be compared, so a compared key must begin with the name of one of
    `tables`.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and _name(node.func) in SEARCHES:
            for text in node.args[1:]:
                if isinstance(text, ast.Constant):
                    yield text.lineno, str(text.value)
        elif isinstance(node, ast.Compare):
            parts = list(ast.walk(node))
            if any(
                (isinstance(part, ast.Attribute) and part.attr == "key")
                or (isinstance(part, ast.Call) and _name(part.func) == "keys_in")
                for part in parts
            ):
                for part in parts:
                    if isinstance(part, ast.Constant) and str(part.value).split(".")[0] in tables:
                        yield part.lineno, str(part.value)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
