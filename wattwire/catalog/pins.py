"""Which versions of libraries a folder pins, read from the lists of its package manager."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from wattwire.catalog.manifest import tomllib

ASSIGNED = re.compile(r"^\s*([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
MODULE = re.compile(r"^\s*(?:require\s+)?([\w-]+\.[\w./-]+) (v\S+)\s*$", re.MULTILINE)
ARTIFACT = re.compile(
    r"<dependency>.*?<artifactId>([^<]+)</artifactId>.*?<version>([^<]+)</version>", re.DOTALL
)


def pins_of(folder: Path) -> dict[str, str]:
    """Return library → version that the files in `folder` ask for by name.

    Exact versions of what is locked; what those libraries need themselves is left out, and a
    file that is damaged is passed over.
    """
    found: dict[str, str] = {}
    for read in READERS:
        try:
            found |= read(folder)
        except (OSError, ValueError, TypeError, AttributeError, KeyError):
            continue  # no such file, or none that its package manager would read
    return found


def _text(folder: Path, name: str) -> str:
    return (folder / name).read_text(encoding="utf-8")


def _requirements(folder: Path) -> dict[str, str]:
    locked = dict(ASSIGNED.findall(_text(folder, "requirements.txt")))
    try:
        lines = _text(folder, "requirements.in").splitlines()
    except OSError:
        return locked
    wanted = {re.split(r"[\s=<>!~;\[]", line.strip())[0].lower() for line in lines}
    return {name: version for name, version in locked.items() if name.lower() in wanted}


def _crates(folder: Path) -> dict[str, str]:
    wanted = tomllib.loads(_text(folder, "Cargo.toml")).get("dependencies", {})
    locked = tomllib.loads(_text(folder, "Cargo.lock")).get("package", [])
    names = {name for name, how in wanted.items() if isinstance(how, str) or "path" not in how}
    return {p["name"]: p["version"] for p in locked if p["name"] in names}


READERS: tuple[Callable[[Path], dict[str, str]], ...] = (
    _requirements,
    _crates,
    lambda folder: dict(json.loads(_text(folder, "package.json")).get("dependencies", {})),
    lambda folder: dict(MODULE.findall(_text(folder, "go.mod"))),
    lambda folder: dict(ARTIFACT.findall(_text(folder, "pom.xml"))),
)
