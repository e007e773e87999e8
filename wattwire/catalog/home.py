"""Locate this installation's open folders and its contract.

They are next to the package in a checkout, and in `wattwire/_data` of an installed package.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def home() -> Path:
    """Return the folder with languages, middleware, meters, studies and the contract.

    A wheel contains them as package data (see setup.py); in a checkout they are next to the
    package.
    """
    data = _PACKAGE / "_data"
    return data if data.is_dir() else _PACKAGE.parent
