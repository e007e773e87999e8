"""Find the programs that belong to wattwire."""

from __future__ import annotations

import functools
import os
import shutil
import sys
from pathlib import Path

from wattwire.catalog.home import home
from wattwire.model.errors import MissingError


def find_program(name: str, variable: str, sources: str) -> Path:
    """Return a program's path, searched in a variable, the wheel, the checkout and PATH.

    `sources` is the folder of its source code in a checkout.
    """
    named = os.environ.get(variable)
    carried = home() / "bin" / name
    built = home() / "target" / "release" / name
    for candidate in (named, carried, built, shutil.which(name)):
        if candidate and os.access(candidate, os.X_OK):
            if candidate == built:
                warn_if_older(built, sources)
            return Path(candidate)
    raise MissingError(
        f"no {name} in {variable} ({named or 'unset'}), {built} or PATH. Build it "
        "with `make setup`, which needs cargo."
    )


@functools.lru_cache
def warn_if_older(built: Path, sources: str) -> None:
    """Warn if a program is older than its source code."""
    files = (home() / sources / "src").rglob("*.rs")
    newest = max((path.stat().st_mtime for path in files), default=0.0)
    if newest > built.stat().st_mtime:
        print(f"wattwire: {built} is older than {sources}/src: run `make agent`", file=sys.stderr)
