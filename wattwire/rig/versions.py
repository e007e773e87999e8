"""Whether the programs that a cell needs are new enough, by what they say of themselves."""

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
"""A program that starts a virtual machine before it tells its version is slow on a busy host."""


class TooOldError(MissingError):
    """A program that a cell needs is on PATH, but not in a version that will do."""


def require_versions(
    requires: Sequence[str], versions: Mapping[str, Mapping[str, Any]], wanted_by: str
) -> None:
    """Check those of `requires` for which `versions` has a `minimum`.

    They must be on PATH. Raises TooOldError with what was found, where, and what is needed.
    """
    for name in requires:
        table = versions.get(name)
        if table is None:
            continue
        minimum, asked = table["minimum"], tuple(table.get("ask", [name, "--version"]))
        place = shutil.which(name)
        found, said = _told(place, asked)
        advice = "install a newer one, put its folder first on PATH, and try again"
        if found is None:
            raise TooOldError(
                f"{wanted_by}: needs {name} {minimum} or newer; `{' '.join(asked)}` told no "
                f"version of {place}: {said}; {advice}"
            )
        if _parts(found) < _parts(minimum):
            raise TooOldError(
                f"{wanted_by}: needs {name} {minimum} or newer; found {found}, which is {place}; "
                f"{advice}"
            )


@functools.cache
def _told(place: str | None, asked: tuple[str, ...]) -> tuple[str | None, str]:
    """The version that a program tells, or None, and what it said. `place` is for the cache."""
    try:
        done = subprocess.run(
            asked, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", timeout=PATIENCE_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, str(error)
    said = " ".join(done.stdout.split())[:200] or "nothing"
    match = DOTTED.search(done.stdout) or PLAIN.search(done.stdout)
    if done.returncode != 0:
        return None, f"exit code {done.returncode}, {said}"
    return (match[0], said) if match else (None, said)


def _parts(version: str) -> tuple[int, ...]:
    """Numbers in order of weight; 1.25 is no older than 1.25.0."""
    numbers = [int(part) for part in version.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
