"""Import a slow library when it is first used, so that quick commands do not wait for it."""

from __future__ import annotations

import importlib
from typing import Any


class LazyModule:
    """A module that is imported when an attribute of it is first read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)
