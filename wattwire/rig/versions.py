"""Check that the programs of a cell report sufficiently recent versions."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from wattwire.model.errors import MissingError

DOTTED, PLAIN = re.compile(r"\d+(?:\.\d+)+"), re.compile(r"\d+")
PATIENCE_S = 30.0
"""Seconds to wait: a program that starts a virtual machine first is slow on a busy host."""


class TooOldError(MissingError):
    """Error for a program of a cell that is on PATH but too old."""


def require_versions(
    requires: Sequence[str], versions: Mapping[str, Mapping[str, Any]], wanted_by: str
) -> None:
    """Check each program of `requires` for which `versions` has a `minimum`.

    The programs must be on PATH. Raise TooOldError with the version, its path and the minimum.
    """
    for name in requires:
        table = versions.get(name)
        if table is None:
            continue
        minimum, command = table["minimum"], tuple(table.get("ask", [name, "--version"]))
        path = shutil.which(name)
        version, output = _reported_version(path, command)
        advice = "install a newer one, put its folder first on PATH, and try again"
        if version is None:
            raise TooOldError(
                f"{wanted_by}: needs {name} {minimum} or newer; `{' '.join(command)}` printed "
                f"no version number for {path}: {output}; {advice}"
            )
        if _version_numbers(version) < _version_numbers(minimum):
            raise TooOldError(
                f"{wanted_by}: needs {name} {minimum} or newer; found {version} ({path}); {advice}"
            )


@functools.cache
def _reported_version(path: str | None, command: tuple[str, ...]) -> tuple[str | None, str]:
    """Return the version that a program reports, or None, and its output.

    `path` is part of the cache key.
    """
    try:
        result = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", timeout=PATIENCE_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, str(error)
    output = " ".join(result.stdout.split())[:200] or "nothing"
    match = DOTTED.search(result.stdout) or PLAIN.search(result.stdout)
    if result.returncode != 0:
        return None, f"exit code {result.returncode}, {output}"
    return (match[0], output) if match else (None, output)


def _version_numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, most significant first; 1.25 and 1.25.0 are equal."""
    numbers = [int(part) for part in version.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
