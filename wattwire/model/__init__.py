"""Value types. This package opens no file, starts no process and uses no network."""

from __future__ import annotations

import importlib
from typing import Any


class LazyModule:
    """A module that is imported when an attribute of it is first read.

    Quick commands do not wait for a slow library that they do not use.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)
