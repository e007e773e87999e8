"""Run a verb in this process and check for a documented exit code."""

from __future__ import annotations

import contextlib
import hashlib
import io
import traceback
from dataclasses import dataclass
from pathlib import Path

from wattwire.cli.main import main

DOCUMENTED = (0, 1, 2, 3, 4, 5)


@dataclass
class Said:
    code: int
    out: str
    err: str


def say(*arguments: str | Path) -> Said:
    """Run one command. Fail the test on a traceback or an undocumented exit code."""
    out, err = io.StringIO(), io.StringIO()
    words = [str(word) for word in arguments]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words)
        except SystemExit as ended:  # raised by argparse
            code = ended.code if isinstance(ended.code, int) else 1
        except Exception:
            raise AssertionError(f"wattwire {words!r}\n{traceback.format_exc()}") from None
    told = out.getvalue() + err.getvalue()
    assert code in DOCUMENTED, f"wattwire {words!r}: exit code {code}: {told}"
    assert "Traceback (most recent call last)" not in told, f"wattwire {words!r}: {told}"
    if code in (2, 3):
        assert len(err.getvalue()) > 15, f"wattwire {words!r}: exit code {code} without words"
    return Said(code, out.getvalue(), err.getvalue())


def contents(folder: Path) -> dict[str, str]:
    """Return the names in a folder with a digest of each file, to detect changes."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else ""
        for path in sorted(folder.rglob("*"))
    }
