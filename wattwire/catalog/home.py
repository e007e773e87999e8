"""Where this wattwire's own open folders are: beside the package, or inside an installed one."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def home() -> Path:
    """The folder with languages, middleware, meters, studies and the contract.

    A wheel carries them as the package's data (see setup.py); in a checkout they stand beside it.
    """
    data = _PACKAGE / "_data"
    return data if data.is_dir() else _PACKAGE.parent
