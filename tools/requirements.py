"""Compare the version of an installed tool with the oldest version that this repository supports.

Usage: requirements.py python|cargo. The program prints nothing if the version is sufficient, and
"unpinned" if Python is older than the pinned packages. If the version is too old, it prints a
sentence and exits with 3. It uses only the standard library, because it runs before the virtual
environment exists.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PINNED_PYTHON = (3, 11)
"""The oldest Python that the versions in requirements.txt support."""


def version(text: str) -> tuple[int, ...]:
    """Return the first version in `text`; (0,) without a version."""
    match = re.search(r"\d+(\.\d+)+", text)
    return tuple(int(part) for part in match.group().split(".")) if match else (0,)


def minimum(file: str, key: str) -> tuple[int, ...]:
    """Return the version of `key` in a TOML file of the repository."""
    text = (ROOT / file).read_text(encoding="utf-8")
    match = re.search(rf'^{key} = "[^\d"]*([\d.]+)"', text, re.MULTILINE)
    if match is None:
        raise ValueError(f"{file}: no {key}")
    return version(match.group(1))


def check_python(running: tuple[int, ...]) -> str:
    """Return "unpinned" or "". Raise SystemExit if Python is too old."""
    oldest = minimum("pyproject.toml", "requires-python")
    if running < oldest:
        refuse("Python", running, oldest, "name a newer one: make PYTHON=python3.11 …")
    return "unpinned" if running < PINNED_PYTHON else ""


def check_cargo(reported: str) -> str:
    """Return "". Raise SystemExit if cargo is too old to build the agent."""
    running, oldest = version(reported), minimum("agent/Cargo.toml", "rust-version")
    if running < oldest:
        refuse("cargo", running, oldest, "rustup installs a newer one")
    return ""


def refuse(tool: str, running: tuple[int, ...], oldest: tuple[int, ...], remedy: str) -> None:
    """Print the versions and a remedy to standard error, and raise SystemExit with code 3."""
    running_text, oldest_text = (".".join(map(str, v)) for v in (running, oldest))
    print(
        f"{tool}: found {running_text}; allowed: {oldest_text} or newer; {remedy}", file=sys.stderr
    )
    raise SystemExit(3)


def main(tool: str) -> int:
    if tool == "python":
        print(check_python(sys.version_info[:3]), end="")
    else:
        output = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True)
        print(check_cargo(output.stdout), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
