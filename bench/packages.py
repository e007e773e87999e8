"""Find the programs of others that the bench compares wattwire with, as `tools.txt` lists them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

LIST = Path(__file__).with_name("tools.txt")
_COLUMNS = re.compile(r"^(?P<program>[^#\s]+)\s+(?P<command>.+?)\s{2,}", re.MULTILINE)


def is_absent(program: str) -> bool:
    """Return whether a program is not on PATH; if so, print how to install it."""
    if shutil.which(program) is not None:
        return False
    commands = {
        row["program"]: row["command"] for row in _COLUMNS.finditer(LIST.read_text("utf-8"))
    }
    name = Path(program).name
    command = commands.get(name, f"Debian: apt install {name}")
    print(f"  {program}: absent: not on PATH ({command})", flush=True)
    return True
