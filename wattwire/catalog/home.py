"""Locate the open folders and the contract of this installation.

In a checkout, they are next to the package. In an installed package, they are in `wattwire/_data`.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
PACKAGE_LISTS = (
    "packages-debian.txt", "languages/*/packages-debian.txt", "middleware/*/packages-debian.txt",
    "middleware/*/*/packages-debian.txt",
)  # fmt: skip


def home() -> Path:
    """Return the folder that contains languages, middleware, meters, studies and the contract.

    An installed package contains them as package data (see setup.py). In a checkout, they are next
    to the package.
    """
    data = _PACKAGE / "_data"
    return data if data.is_dir() else _PACKAGE.parent


def debian_packages() -> dict[str, str]:
    """Return program or file → its Debian package, from the packages-debian.txt of all folders."""
    packages = {}
    for pattern in PACKAGE_LISTS:
        for list_path in sorted(home().glob(pattern)):
            for line in list_path.read_text(encoding="utf-8").splitlines():
                columns = line.split(maxsplit=3)
                if len(columns) > 1 and not line.startswith("#"):
                    packages[columns[1]] = columns[0]
    return packages
