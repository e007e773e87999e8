"""Check the services of a middleware, and select those that a treatment needs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from wattwire.model.errors import UsageError, unknown
from wattwire.model.fields import merge
from wattwire.model.treatment import Level

Services = Mapping[str, dict[str, Any]]
"""Name of a service → its table in the manifest."""
NAME = re.compile(r"[A-Za-z][\w-]*", re.ASCII)
BUILT = "{environment}"
SETTING = re.compile(r"\{settings\.([^{}]*)\}")
SECURED_TABLE = "secured"
"""Table of a service with the keys that replace those of the service if it is secured (C-43)."""
SERVICE = re.compile(r"\{services\.([^{}]*)\}")


def needed(
    services: Services, settings: Mapping[str, Level], is_secured: bool
) -> dict[str, dict[str, Any]]:
    """Return the services that a treatment with these settings needs, in the manifest's order.

    `settings` contains every setting of the middleware, with defaults filled in. In a secured
    treatment, the keys of a service's table `secured` replace those of the service.
    """
    return {
        name: _with_security(table, is_secured)
        for name, table in services.items()
        if _is_needed(table, settings)
    }


def _with_security(table: Mapping[str, Any], is_secured: bool) -> dict[str, Any]:
    own = {key: value for key, value in table.items() if key != SECURED_TABLE}
    return merge(own, table.get(SECURED_TABLE, {})) if is_secured else own


def _is_needed(table: Mapping[str, Any], settings: Mapping[str, Level]) -> bool:
    return all(settings.get(name) == level for name, level in _conditions(table).items())


def _conditions(table: Mapping[str, Any]) -> Mapping[str, Level]:
    conditions: Mapping[str, Level] = table.get("when", {}).get("settings", {})
    return conditions


def check_services(
    where: str, services: Services, settings: Mapping[str, Mapping[str, Any]], has_environment: bool
) -> None:
    """Raise UsageError for an invalid service. `settings` are the tables of the settings."""
    earlier: list[str] = []
    for name, table in services.items():
        place = f"{where}: services.{name}"
        if not NAME.fullmatch(name):
            raise UsageError(
                f"{place}: found the name {name!r}; allowed: letters, digits, - and _, with a "
                "letter first"
            )
        for setting, level in _conditions(table).items():
            if setting not in settings:
                raise unknown(f"{place}.when", "setting", setting, settings)
            _check_level(f"{place}.when.settings.{setting}", level, settings[setting])
        if table.get("hub") and not table.get("endpoints"):
            raise UsageError(
                f"{place}.hub: found true without endpoints, so no node can connect to the "
                "service. Add endpoints, or remove hub."
            )
        if "counters" in table and not table["counters"]:
            raise UsageError(
                f"{place}.counters: found []; allowed: a program and its arguments. Remove the "
                "key if the service has no counters."
            )
        for part in (table, table.get(SECURED_TABLE, {})):
            _check_placeholders(place, part, settings, has_environment)
            _check_earlier(place, part, earlier)
        if table.get("endpoints"):
            earlier.append(name)


def _check_level(where: str, level: Any, setting: Mapping[str, Any]) -> None:
    allowed = setting.get("allowed")
    if allowed is not None and level not in allowed:
        raise UsageError(f"{where}: found {level!r}; allowed: {', '.join(map(repr, allowed))}")
    if type(level) is not type(setting["default"]):
        raise UsageError(f"{where}: found {level!r}; allowed: {setting['type']}")


def _check_placeholders(
    place: str,
    table: Mapping[str, Any],
    settings: Mapping[str, Mapping[str, Any]],
    has_environment: bool,
) -> None:
    for key, values in _texts(table).items():
        for name in SETTING.findall("\n".join(values)):
            if name not in settings:
                raise unknown(f"{place}.{key}", "setting", name, settings)
        if not has_environment and any(BUILT in value for value in values):
            raise UsageError(
                f"{place}.{key}: found {BUILT}, but the manifest has no [environment]. Add the "
                "table, or do not use the placeholder."
            )


def _check_earlier(place: str, table: Mapping[str, Any], earlier: Sequence[str]) -> None:
    """Raise UsageError for a placeholder of a service that has not started, or no endpoint."""
    for key, values in _texts(table).items():
        for name in SERVICE.findall("\n".join(values)):
            if name not in earlier:
                allowed = ", ".join(earlier) or "none"
                raise UsageError(
                    f"{place}.{key}: found {{services.{name}}}; allowed: services with endpoints "
                    f"that the manifest declares before this one ({allowed})"
                )


def _texts(table: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """Return the texts of a service that may contain placeholders (key → texts)."""
    return {
        "argv": table.get("argv", ()),
        "counters": table.get("counters", ()),
        "endpoints": table.get("endpoints", ()),
        "env": tuple(table.get("env", {}).values()),
        "files": tuple(table.get("files", {}).values()),
    }


def setting_words(settings: Mapping[str, Level]) -> dict[str, str]:
    """Return the placeholders of settings, such as "settings.depth" → "10"."""
    return {f"settings.{name}": _word(level) for name, level in settings.items()}


def _word(level: Level) -> str:
    """Return a level as text. Booleans are true and false, as in TOML and most configurations."""
    return str(level).lower() if isinstance(level, bool) else str(level)
