"""From what was typed to a study document: presets, --set, --only."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wattwire.catalog import Catalog
from wattwire.catalog.manifest import read_toml, tomllib
from wattwire.model.errors import UsageError, unknown
from wattwire.model.study import (
    LEVEL_TYPES,
    TOP_KEYS,
    Study,
    apply_preset,
    merge,
    parse_study,
)
from wattwire.model.treatment import Treatment


def add_options(verb: argparse.ArgumentParser) -> None:
    """STUDY and what changes it."""
    verb.add_argument("study", nargs="?", metavar="STUDY", help="a study's name, folder or file")
    verb.add_argument("--preset", metavar="P", help="a preset of the study")
    verb.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="changes",
        help="change the study, e.g. payload_bytes=1024, clients=[1,4] or plan.blocks=2",
    )
    verb.add_argument(
        "--only", metavar="EXPR", help="only some treatments, e.g. language=python,clients=1|2"
    )


def load(
    catalog: Catalog, name: str | None, preset: str | None, changes: list[str]
) -> tuple[str, Path, dict[str, Any]]:
    """Name, file and effective document of a study."""
    if name is None:
        raise UsageError(f"no study given; known: {', '.join(sorted(catalog.studies))}")
    found, path = catalog.study(name)
    document = apply_preset(read_toml(path), preset, str(path))
    stages = [document]
    for text in changes:
        stages.append(change(stages[-1], text))
    _blame(found, stages, changes, str(path))
    return found, path, stages[-1]


def _blame(name: str, stages: list[dict[str, Any]], changes: list[str], path: str) -> None:
    """Where the changed study is refused, name the --set that broke it rather than the file."""
    try:
        parse_study(name, stages[-1], path)
        return
    except UsageError as error:
        last = error
    # Several changes may be right only together, so all of them are looked at from the end.
    for text, before in zip(reversed(changes), reversed(stages[:-1]), strict=True):
        try:
            parse_study(name, before, path)
        except UsageError as error:
            if str(error) == str(last):
                continue
        raise UsageError(f"--set {text}: {str(last).removeprefix(f'{path}: ')}") from last


def change(document: dict[str, Any], wanted: str) -> dict[str, Any]:
    """The document with one KEY=VALUE of --set applied. Raises UsageError for other text.

    What may be a factor needs no table's name: a list of levels varies it, one level holds it.
    """
    key, equals, text = wanted.partition("=")
    if not equals or not key:
        raise UsageError(
            f"--set {wanted}: allowed: KEY=VALUE, e.g. payload_bytes=1024 or plan.blocks=2"
        )
    value = value_of(text)
    if key in LEVEL_TYPES or key.startswith("settings."):
        key = f"{'factors' if isinstance(value, list) else 'fixed'}.{key}"
    table, _, name = key.partition(".")
    if not name and table not in TOP_KEYS:
        raise unknown(f"--set {wanted}", "key", table, [*TOP_KEYS, *LEVEL_TYPES])
    merged = merge(document, {table: {name: value}} if name else {table: value})
    for place in ("factors", "fixed"):
        if not isinstance(merged.get(place, {}), dict):
            raise UsageError(f"--set {wanted}: {place}: found {merged[place]!r}; allowed: a table")
    other = {"fixed": "factors", "factors": "fixed"}.get(table)
    if other:
        merged.get(other, {}).pop(name, None)
    return merged


def value_of(text: str) -> Any:
    """A TOML value; a bare word is a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def chooser(study: Study, expression: str | None) -> Callable[[Treatment], bool] | None:
    """A predicate from `key=level|level,key=level`; None where all treatments are wanted."""
    if expression is None:
        return None
    wanted: dict[str, set[str]] = {}
    for part in expression.split(","):
        key, equals, levels = part.partition("=")
        key = key.strip()
        if not equals:
            raise UsageError(f"--only {expression}: allowed: factor=level|level,factor=level")
        if key not in study.factors:
            raise unknown("--only", "factor", key, study.factors)
        known = {str(level) for level in study.factors[key]}
        wanted[key] = {level.strip() for level in levels.split("|")}
        for level in wanted[key] - known:
            raise unknown(f"--only {key}", "level", level, known)
    return lambda t: all(str(t[key]) in levels for key, levels in wanted.items())
