"""Locate the open folders and the contract of this installation.

In a checkout, they are next to the package. In an installed package, they are in `wattwire/_data`.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def home() -> Path:
    """Return the folder that contains languages, middleware, meters, studies and the contract.

    An installed package contains them as package data (see setup.py). In a checkout, they are next
    to the package.
    """
    data = _PACKAGE / "_data"
    return data if data.is_dir() else _PACKAGE.parent
