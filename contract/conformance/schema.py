"""Validate the lines of nodes by the contract's JSON Schemas."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

FOLDER = Path(__file__).resolve().parent.parent / "schemas"
NAMES = ("spec", "listening", "ready", "sent", "done", "error", "agent-hello", "agent-exit")


@functools.cache
def validator(name: str) -> Draft202012Validator:
    schema = json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def breaches(name: str, value: Any) -> Iterator[str]:
    """Yield a text for each deviation of `value` from the named schema."""
    for error in sorted(validator(name).iter_errors(value), key=lambda error: error.json_path):
        yield f"{error.json_path}: {error.message}"
