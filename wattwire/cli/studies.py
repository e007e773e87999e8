"""Build the study document from the options of a command, such as presets, --set and --only."""

from __future__ import annotations

import argparse
import fnmatch
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from wattwire import __version__
from wattwire.catalog import Catalog
from wattwire.catalog.manifest import read_toml, tomllib
from wattwire.catalog.rigs import load_rig
from wattwire.catalog.topologies import with_topology
from wattwire.cli.quantities import duration_s, share_of_all, size_bytes
from wattwire.design import expand
from wattwire.model.deployment import EXEC
from wattwire.model.errors import UsageError, unknown
from wattwire.model.fields import merge
from wattwire.model.setting_keys import with_flat_settings
from wattwire.model.study import (
    LEVEL_RULES,
    RIG,
    TOP_KEYS,
    VERSION_MIN,
    Plan,
    Study,
    apply_preset,
    check_baselines,
    parse_study,
)
from wattwire.model.treatment import Treatment, is_setting
from wattwire.model.validity import SHARE_LIMITS, VALIDITY, ValidityLimits
from wattwire.model.variants import FACTOR as VARIANT
from wattwire.model.warm_up import AUTO_WORD
from wattwire.model.words import as_typed

MEANT = {
    "concurrency": "clients", "connections": "clients", "workers": "clients", "users": "clients",
    "size": "payload_bytes", "payload": "payload_bytes", "rate": "rate_hz", "qps": "rate_hz",
    "requests": "count", "calls": "count", "duration": "plan.duration_s",
    "repetitions": "plan.blocks", "repeats": "plan.blocks", "warmup": "plan.warmup_s",
}  # fmt: skip
"""Common terms of load generators → keys of a study."""


def warm_up_changes(text: str | None) -> list[str]:
    """Return the changes KEY=VALUE that `--warmup TEXT` makes to the study.

    Raises UsageError for invalid text.
    """
    if text is None:
        return []
    word = text.strip().lower()
    if word == AUTO_WORD:
        return [f"plan.warmup_calls={AUTO_WORD}"]
    if word == "none":
        return ["plan.warmup_calls=0", "plan.warmup_s=0"]
    if word.isdecimal():
        return [f"plan.warmup_calls={int(word)}"]
    try:
        seconds = duration_s(word, "--warmup")
    except UsageError as error:
        raise UsageError(
            f"--warmup: found {text!r}; allowed: auto, none, a number of calls, such as 200, or a "
            "time, such as 2s or 500ms"
        ) from error
    return ["plan.warmup_calls=0", f"plan.warmup_s={seconds:g}"]


def refuse_calls_of_none(document: Mapping[str, Any], text: str | None) -> None:
    """Raise UsageError if the warm-up is given in calls and the study has no closed loop."""
    if not text or not text.strip().isdecimal() or not int(text):
        return
    tables = [document.get("fixed"), document.get("factors")]
    loops = [table.get("loop") for table in tables if isinstance(table, Mapping)]
    if not any(isinstance(loop, (str, list)) and "closed" in loop for loop in loops):
        raise UsageError(
            f"--warmup {text}: a number of calls needs a closed loop, and this study's loop is "
            "open. Use a time, such as --warmup 2s."
        )


def loaded(
    catalog: Catalog, options: argparse.Namespace, preset: str | None
) -> tuple[str, Path, dict[str, Any]]:
    """Return name, file and document of the study, with all options applied."""
    changes = [*options.changes, *warm_up_changes(options.warmup)]
    changes += ["validity.look=true"] if getattr(options, "look", False) else []
    name, path, document = load(catalog, options.study, preset, changes)
    refuse_calls_of_none(document, options.warmup)
    if options.rig:
        document = {**document, RIG: dict(load_rig(Path(options.rig), catalog).document)}
    return name, path, document


def check_version(document: Mapping[str, Any], where: str, version: str = __version__) -> None:
    """Raise UsageError if the study requires a later version of wattwire."""
    minimum = document.get(VERSION_MIN, version)
    if not isinstance(minimum, str) or not re.fullmatch(r"\d{1,6}(\.\d{1,6}){0,2}", minimum):
        raise UsageError(
            f'{where}: {VERSION_MIN}: found {minimum!r}; allowed: a version such as "{version}"'
        )
    if _parts(minimum) > _parts(version):
        raise UsageError(
            f"{where}: {VERSION_MIN}: this study requires wattwire {minimum} or later; this is "
            f"wattwire {version}. Update wattwire."
        )


def _parts(version: str) -> list[int]:
    return [int(part) for part in (version.split(".") + ["0", "0"])[:3]]


def load(
    catalog: Catalog, name: str | None, preset: str | None, changes: list[str]
) -> tuple[str, Path, dict[str, Any]]:
    """Return the name, the file and the effective document of a study.

    Raises UsageError for an invalid study or change.
    """
    if name is None:
        raise UsageError(f"STUDY is missing; known studies: {', '.join(sorted(catalog.studies))}")
    study_name, path = catalog.study(name)
    full_document = with_flat_settings(read_toml(path), str(path))
    check_version(full_document, str(path))
    if EXEC in full_document:
        raise UsageError(
            f"{path}: {EXEC}: a study measures cells; use `wattwire exec -- COMMAND` instead"
        )
    if RIG in full_document:
        raise UsageError(f"{path}: {RIG}: a study names no hosts; write a file for --rig FILE")
    document = with_topology(apply_preset(full_document, preset, str(path)), path)
    stages = [document]
    settings = {name for middleware in catalog.middleware.values() for name in middleware.settings}
    keys = [text.partition("=")[0] for text in changes]
    for key, text in zip(keys, changes, strict=True):
        if keys.count(key) > 1:
            raise UsageError(f"--set {text}: {key} is set {keys.count(key)} times; set it once")
        changed = with_flat_settings(change(stages[-1], text, settings), str(path))
        stages.append(with_topology(changed, path))
        if key.partition(".")[0] == "answers":
            presets = {**full_document.get("presets", {}), preset or "none": document}
            check_baselines({**stages[-1], "presets": presets}, f"--set {text}")
    _blame(study_name, stages, changes, str(path), catalog)
    return study_name, path, stages[-1]


def _blame(
    name: str, stages: list[dict[str, Any]], changes: list[str], path: str, catalog: Catalog
) -> None:
    """Raise UsageError for an invalid study. The error names the --set that causes it, if any."""
    # Limits on variants are validated later, when the study contains its variants.
    stages = [_without_limits_on_variants(stage) for stage in stages]
    try:
        parse_study(name, stages[-1], path)
        return
    except UsageError as error:
        refusal = error
    # Several changes may be valid only together, so the search begins at the last change.
    for text, earlier in zip(reversed(changes), reversed(stages[:-1]), strict=True):
        try:
            parse_study(name, earlier, path)
        except UsageError as error:
            if str(error) == str(refusal):
                continue
        _refuse_setting(text, catalog)
        raise UsageError(f"--set {text}: {str(refusal).removeprefix(f'{path}: ')}") from refusal


def _without_limits_on_variants(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document without limits on variants, because the variants are added later."""
    limits = document.get("limit")
    if document.get("variants") or not isinstance(limits, list):
        return document
    kept = [
        entry
        for entry in limits
        if not (isinstance(entry, dict) and VARIANT in entry.get("where", {}))
    ]
    return {**document, "limit": kept}


def _refuse_setting(text: str, catalog: Catalog) -> None:
    """Raise UsageError for a level that no middleware with this setting accepts."""
    key, _, value = text.partition("=")
    _, _, name = key.removeprefix("fixed.").partition("settings.")
    refusals = []
    for middleware in catalog.middleware.values():
        if name in middleware.settings:
            try:
                middleware.effective_settings({name: value_of(value)})
                return
            except UsageError as error:
                refusals.append(error)
    if refusals:
        raise UsageError(f"--set {text}: {refusals[0]}") from refusals[0]


def change(document: dict[str, Any], wanted: str, settings: Iterable[str] = ()) -> dict[str, Any]:
    """Return the document with a change KEY=VALUE applied. Raises UsageError for other text.

    A factor's key needs no table name. A list of levels varies the factor, and a single level fixes
    it. `settings` contains the names of all settings, which errors suggest.
    """
    key, equals, text = wanted.partition("=")
    if not equals or not key:
        raise UsageError(
            f"--set {wanted}: allowed: KEY=VALUE, e.g. payload_bytes=1024 or plan.blocks=2"
        )
    value = level_of(key, text, f"--set {key}")
    if key in LEVEL_RULES or is_setting(key):
        key = f"{'factors' if isinstance(value, list) else 'fixed'}.{key}"
    table, _, name = key.partition(".")
    if not name and table not in TOP_KEYS:
        suggestions = {name: f"settings.{name}" for name in settings}
        suggestions |= {field.name: f"plan.{field.name}" for field in fields(Plan)}
        suggestions |= {field.name: f"{VALIDITY}.{field.name}" for field in fields(ValidityLimits)}
        suggestions |= MEANT
        known = {
            *TOP_KEYS,
            *LEVEL_RULES,
            "settings.NAME",
            "outer_settings.NAME",
            suggestions.get(table, "plan.NAME"),
        }
        raise unknown(f"--set {wanted}", "key", table, known, suggestions)
    merged = merge(document, {table: {name: value}} if name else {table: value})
    for section in ("factors", "fixed"):
        if not isinstance(merged.get(section, {}), dict):
            raise UsageError(
                f"--set {wanted}: {section}: found {merged[section]!r}; allowed: a table"
            )
    opposite = {"fixed": "factors", "factors": "fixed"}.get(table)
    if opposite:
        merged.get(opposite, {}).pop(name, None)
    return merged


def level_of(key: str, text: str, option: str) -> Any:
    """Parse the level of a key as a size with a suffix, a share in percent, or TOML."""
    value = value_of(text)
    if key.removeprefix(f"{VALIDITY}.") in SHARE_LIMITS and str(value).endswith("%"):
        return share_of_all(value, option)
    if key.rpartition(".")[2] == "payload_bytes":
        return _sizes(value, text, option)
    if value == text and text.startswith("[") and text.endswith("]"):
        raise UsageError(f"{option}: found {text}; {_quoted(text, option)}")
    return value


def _quoted(text: str, option: str) -> str:
    """Return the remedy for a list that is no TOML, which usually lacks its quotes."""
    words = [word.strip() for word in text[1:-1].split(",")]
    items = (json.dumps(word) if value_of(word) == word else word for word in words)
    key = option.removeprefix("--set ")
    return (
        "the quotes are missing: each text in a list needs double quotes, and the shell removes "
        f"them unless the whole argument is in single quotes: --set '{key}=[{','.join(items)}]'"
    )


def _sizes(value: Any, text: str, option: str) -> Any:
    """Convert a size or a list of sizes to bytes. Numbers without a suffix are unchanged."""
    if isinstance(value, str) and text.startswith("[") and text.endswith("]"):
        value = [value_of(word.strip()) for word in text[1:-1].split(",")]
    if isinstance(value, list):
        return [size_bytes(v, option) if isinstance(v, str) else v for v in value]
    return size_bytes(value, option) if isinstance(value, str) else value


def value_of(text: str) -> Any:
    """Parse a TOML value. A bare word is a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def chooser(
    study: Study, expression: str | None, catalog: Catalog
) -> Callable[[Treatment], bool] | None:
    """Return a predicate that selects treatments by `key=level|level,key=level`.

    The result is None without an expression. A key is a factor or an attribute of the cells. For
    example, `language` also selects cells of this language. A level may be a pattern such as
    `*/go`. Raises UsageError for an unknown key or level.
    """
    if expression is None:
        return None
    attributes = _attributes(study, catalog)
    wanted_levels: dict[str, set[str]] = {}
    for term in expression.split(","):
        key, equals, levels = term.partition("=")
        key = key.strip()
        if not equals:
            raise UsageError(f"--only {expression}: allowed: factor=level|level,factor=level")
        if key not in attributes:
            raise unknown("--only", "factor", key, attributes)
        known = attributes[key]
        wanted_levels[key] = set()
        for level in (level.strip() for level in levels.split("|")):
            matches = {level} & known or set(fnmatch.filter(known, level))
            if not matches:
                raise unknown(f"--only {key}", "level", level, known)
            wanted_levels[key] |= matches
    return lambda t: all(
        _attribute(t, key, catalog) in levels for key, levels in wanted_levels.items()
    )


def _attributes(study: Study, catalog: Catalog) -> dict[str, set[str]]:
    """Return the levels of each key that --only accepts (factors and attributes of cells)."""
    attributes = {
        factor: {as_typed(level) for level in levels} for factor, levels in study.factors.items()
    }
    derived: tuple[str, ...] = ()
    if "cell" in study.factors:
        derived = ("language", "middleware")
    elif {"language", "middleware"} & set(study.factors):
        derived = ("cell",)
    treatments = [treatment for treatment, _ in expand(study)] if derived else []
    for key in derived:
        attributes.setdefault(
            key, {_attribute(treatment, key, catalog) for treatment in treatments}
        )
    return attributes


def _attribute(treatment: Treatment, key: str, catalog: Catalog) -> str:
    """Return a treatment's level of a factor, or the language, middleware or name of its cell."""
    if key in dict(treatment.levels) or key not in ("cell", "language", "middleware"):
        return as_typed(treatment.get(key))
    if key == "cell":
        return f"{treatment.get('middleware')}/{treatment.get('language')}"
    middleware, _, folder = str(treatment.get("cell")).partition("/")
    if key == "middleware":
        return middleware
    name = f"{middleware}/{folder}"
    return catalog.cell(name).language if name in catalog.cells else folder
