"""Read the library versions that a folder pins in its package manager's files."""

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
    """Return the pinned versions of the libraries that `folder` requires (library → version).

    Versions are exact if a lock file contains them. The result omits transitive dependencies.
    Damaged files are ignored.
    """
    pins: dict[str, str] = {}
    for read in READERS:
        try:
            pins |= read(folder)
        except (OSError, ValueError, TypeError, AttributeError, KeyError):
            continue  # the file does not exist, or its package manager could not read it
    return pins


def _text(folder: Path, name: str) -> str:
    return (folder / name).read_text(encoding="utf-8")


def _requirements(folder: Path) -> dict[str, str]:
    locked = dict(ASSIGNED.findall(_text(folder, "requirements.txt")))
    try:
        lines = _text(folder, "requirements.in").splitlines()
    except OSError:
        return locked
    required = {re.split(r"[\s=<>!~;\[]", line.strip())[0].lower() for line in lines}
    return {name: version for name, version in locked.items() if name.lower() in required}


def _crates(folder: Path) -> dict[str, str]:
    required = tomllib.loads(_text(folder, "Cargo.toml")).get("dependencies", {})
    locked = tomllib.loads(_text(folder, "Cargo.lock")).get("package", [])
    names = {
        name
        for name, requirement in required.items()
        if isinstance(requirement, str) or "path" not in requirement
    }
    return {package["name"]: package["version"] for package in locked if package["name"] in names}


READERS: tuple[Callable[[Path], dict[str, str]], ...] = (
    _requirements,
    _crates,
    lambda folder: dict(json.loads(_text(folder, "package.json")).get("dependencies", {})),
    lambda folder: dict(MODULE.findall(_text(folder, "go.mod"))),
    lambda folder: dict(ARTIFACT.findall(_text(folder, "pom.xml"))),
)
