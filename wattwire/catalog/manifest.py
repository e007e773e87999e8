"""Read manifests and reject unknown keys.

An error names the file, the key and the allowed keys.
"""

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

# The allowed value of a key is a type (float for any number), [type] for a list of that type, list
# for any list, None for any value, or a table of the allowed keys, in which "*" stands for any key.
WORDS: list[Any] = [str]
COMMANDS: list[Any] = [WORDS]
BUILD_KEYS: dict[str, Any] = {
    "commands": COMMANDS, "timeout_s": float, "heavy": str, "lists": {"*": WORDS},
    "expected_s": float,
}  # fmt: skip
RUN_KEYS: dict[str, Any] = {"argv": WORDS, "env": {"*": str}}
VERSION_KEYS: dict[str, Any] = {"minimum": str, "ask": WORDS, "obtain": str}
CELL_KEYS: dict[str, Any] = {
    "inputs": WORDS, "requires": WORDS, "versions": {"*": VERSION_KEYS},
    "patterns": WORDS, "capabilities": WORDS, "because": str,
    "build": BUILD_KEYS, "run": RUN_KEYS, "payload_bytes_max": int, "record_bytes_max": int,
    "payload_bytes_min": int, "start_cpu_s": float,
}  # fmt: skip
LANGUAGE_KEYS: dict[str, Any] = {**CELL_KEYS, "title": str, "kit": str, "wraps": str}
SETTING_KEYS: dict[str, Any] = {
    "type": str, "default": None, "allowed": list, "summary": str, "minimum": float,
    "maximum": float, "purpose": str, "only": {"*": {"*": list}},
}  # fmt: skip
PROCESS_KEYS: dict[str, Any] = {
    "argv": WORDS, "files": {"*": str}, "env": {"*": str}, "endpoints": WORDS, "counters": WORDS,
    "ready": {"port": str, "line": str, "exec": WORDS},
}  # fmt: skip
SERVICE_KEYS: dict[str, Any] = {
    **PROCESS_KEYS, "requires": WORDS, "ports": int, "stop": str,
    "when": {"settings": {"*": None}}, "hub": bool, "secured": PROCESS_KEYS,
}  # fmt: skip
ENVIRONMENT_KEYS: dict[str, Any] = {
    "requires": WORDS, "inputs": WORDS, "commands": COMMANDS, "exports": str, "timeout_s": float,
    "host_env": WORDS, "host_env_with": WORDS, "host_files": WORDS, "expected_s": float,
    "offline": str,
}  # fmt: skip
MIDDLEWARE_KEYS: dict[str, Any] = {
    "title": str, "payload_bytes_max": int, "record_bytes_max": int, "reach": str,
    "build": BUILD_KEYS, "run": RUN_KEYS,
    "patterns": {"*": {"listens": str, "replies_told_by": str, "error_replies": bool}},
    "settings": {"*": SETTING_KEYS},
    "services": {"*": SERVICE_KEYS}, "environment": ENVIRONMENT_KEYS,
    "security": {"governance": str, "permissions": str},
}  # fmt: skip
NODE_KEYS: dict[str, Any] = {
    **CELL_KEYS, "language": str, "wire": str, "imports": str, "remark": str,
    "settings": {"*": {"allowed": list, "because": str}}, "layers": {"absent": str},
    "emulated": {"device": str, "clock_hz": float, "cycles_per_instruction": [float]},
}  # fmt: skip
KIND_WORDS = {
    bool: "true or false",
    str: "a string",
    int: "a whole number",
    float: "a number",
    list: "a list",
}


def read_toml(path: Path) -> dict[str, Any]:
    """Parse a TOML file. Raises UsageError with the path and the position of a syntax error."""
    try:
        return parsed_toml(path.read_text(encoding="utf-8"), path)
    except FileNotFoundError:
        raise UsageError(f"{path}: this file does not exist") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:  # not UTF-8
        raise UsageError(f"{path}: not valid TOML: {error}") from error


def parsed_toml(text: str, path: Path) -> dict[str, Any]:
    """Parse the text of a TOML file. Raises UsageError as `read_toml` does."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not TOML, or an overlong number
        raise UsageError(f"{path}: not valid TOML: {error}") from error


def check_keys(table: Mapping[str, Any], allowed: Mapping[str, Any], where: str) -> None:
    """Raise UsageError for a key or a value that `allowed` does not permit."""
    for key, value in table.items():
        if key not in allowed and "*" not in allowed:
            raise unknown(where, "key", key, allowed)
        kind = allowed.get(key, allowed.get("*"))
        if isinstance(kind, Mapping):
            if not isinstance(value, Mapping):
                raise UsageError(f"{where}: {key}: found {value!r}; allowed: a table")
            check_keys(value, kind, f"{where}: {key}")
        elif not _is_allowed(value, kind):
            raise UsageError(f"{where}: {key}: found {value!r}; allowed: {_describe(kind)}")


def _is_allowed(value: Any, kind: Any) -> bool:
    if kind is None:
        return True
    if isinstance(kind, list):
        return isinstance(value, list) and all(_is_allowed(item, kind[0]) for item in value)
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def _describe(kind: Any) -> str:
    if isinstance(kind, list):
        return f"a list; each item: {_describe(kind[0])}"
    return KIND_WORDS[kind]
