"""Reads manifests and refuses unknown keys, naming file, key, what is allowed and the nearest."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wattwire.model.errors import UsageError, unknown

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BUILD_KEYS = {"commands": None, "timeout_s": None, "heavy": None, "lists": {"*": None}}
RUN_KEYS = {"argv": None, "env": {"*": None}}
CELL_KEYS: dict[str, Any] = {
    "inputs": None, "requires": None, "patterns": None, "capabilities": None, "because": None,
    "build": BUILD_KEYS, "run": RUN_KEYS, "payload_bytes_max": None,
    "record_bytes_max": None,
}  # fmt: skip
LANGUAGE_KEYS: dict[str, Any] = {**CELL_KEYS, "title": None, "kit": None}
SETTING_KEYS = {
    "type": None, "default": None, "allowed": None, "summary": None, "minimum": None,
    "maximum": None, "role": None,
}  # fmt: skip
SERVICE_KEYS = {
    "argv": None, "requires": None, "ports": None, "files": {"*": None}, "env": {"*": None},
    "ready": {"port": None, "line": None, "exec": None}, "endpoints": None, "stop": None,
}  # fmt: skip
ENVIRONMENT_KEYS = {
    "requires": None, "inputs": None, "commands": None, "exports": None, "timeout_s": None,
    "host_env": None,
}  # fmt: skip
MIDDLEWARE_KEYS: dict[str, Any] = {
    "title": None, "summary": None, "payload_bytes_max": None, "record_bytes_max": None,
    "build": BUILD_KEYS, "run": RUN_KEYS,
    "patterns": {"*": {"listens": None}}, "settings": {"*": SETTING_KEYS},
    "services": {"*": SERVICE_KEYS}, "environment": ENVIRONMENT_KEYS,
}  # fmt: skip
NODE_KEYS: dict[str, Any] = {**CELL_KEYS, "language": None, "quarantine": {"*": None}}
METER_KEYS: dict[str, Any] = {
    "title": None, "summary": None, "tier": None, "default": None, "quantity": None,
    "run": None, "info": {"*": None},
}  # fmt: skip


def read_toml(path: Path) -> dict[str, Any]:
    """Read one TOML file; a syntax error names the file and the place."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from error


def check_keys(table: Mapping[str, Any], allowed: Mapping[str, Any], where: str) -> None:
    """Refuse every key that `allowed` does not name ("*" stands for any key)."""
    for key, value in table.items():
        if key not in allowed and "*" not in allowed:
            raise unknown(where, "key", key, allowed)
        below = allowed.get(key, allowed.get("*"))
        if isinstance(below, Mapping):
            if not isinstance(value, Mapping):
                raise UsageError(f"{where}: {key}: found {value!r}; allowed: a table")
            check_keys(value, below, f"{where}: {key}")
