"""Check the templates of topics (wattwire/analysis/topics) statically.

A wrong name would raise an error only when its branch is reached, possibly on a user's page.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

import jinja2
from jinja2 import nodes

from wattwire.report.figures.charts_by_name import CHARTS

WORDS, OWN, SHARED = "words", "own", "shared"
"""Names under which a template imports sentences: those of its `words.j2`, those that each folder
inside its own folder has, and those of the folder around its own.
"""
LOOP = frozenset({"first", "last", "index", "index0"})
NEITHER = "is neither a field nor a sentence"
_TAG = re.compile(r"<(?:table|th|figure|form)\b[^>]*>")
_GIVEN = re.compile(
    r'data-(rows|runs|points|key|field|of|sentence|reason|mark|hint|labels|chart)="([^"{]+)"'
)


def fields_of(source: str) -> set[str]:
    """Return the names of the fields and properties of the classes in a module."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
                    names.add(member.target.id)
                elif isinstance(member, ast.FunctionDef) and member.decorator_list:
                    names.add(member.name)
    return names


def imported_modules(source: str) -> set[str]:
    """Return the names of the modules from which a module imports, such as `wattwire.model`."""
    imports = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom))
    return {node.module for node in imports if node.module}


def macros_of(environment: jinja2.Environment, source: str) -> set[str]:
    """Return the names of the macros in a template."""
    return {macro.name for macro in environment.parse(source).find_all(nodes.Macro)}


def name_problems(
    environment: jinja2.Environment,
    source: str,
    fields: set[str],
    macros: set[str],
    others: Mapping[str, set[str]] | None = None,
) -> Iterator[str]:
    """Yield each name that is neither a field nor, after `words.` or as a sentence, a macro.

    `others` are the macros of other folders, by the name under which a template imports them.
    Charts are those of the page.
    """
    known_after = {"loop": LOOP, WORDS: macros, **(others or {})}
    for access in environment.parse(source).find_all(nodes.Getattr):
        owner = access.node.name if isinstance(access.node, nodes.Name) else ""
        known = known_after.get(owner, fields)
        if access.attr not in known:
            yield f'{access.lineno}: "{access.attr}" {NEITHER}'
    for tag in _TAG.finditer(source):
        given = dict(_GIVEN.findall(tag[0]))
        if "sentence" in given or "field" in given or _has_written_rows(source, tag.end()):
            given.pop("key", None)
        for attribute, path in given.items():
            known = fields
            if attribute in ("sentence", "reason", "mark", "hint"):
                known = macros
            elif attribute == "chart":
                known = set(CHARTS)
            for name in path.split("."):
                if name not in known and not name.isdigit():
                    line = source.count("\n", 0, tag.start()) + 1
                    kinds = "is no chart" if attribute == "chart" else NEITHER
                    yield f'{line}: data-{attribute}: "{name}" {kinds}'


def _has_written_rows(source: str, end: int) -> bool:
    """Return whether the table around this index has its rows in the template."""
    begin = source.rfind("<table", 0, end)
    return begin >= 0 and "data-rows" not in source[begin:].partition(">")[0]


def unused_macros(macros: set[str], templates: str, modules: str = "") -> set[str]:
    """Return the macros that no template calls, and that no module has as an attribute."""
    return {
        name
        for name in macros
        if not re.search(rf"(?<!macro )\b{name}[(),]", templates)
        and not re.search(rf"\.{name}\b", modules)
    }
