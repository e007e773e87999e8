"""Test that a command works if its caller has closed the standard files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HANG_S = 120.0
PRINT_FIRST_FREE = """
import os, sys
from wattwire.cli.main import open_standard_files
open_standard_files()
print("text")
sys.stdout.flush()
with open(sys.argv[1], "w") as result:
    result.write(str(result.fileno()))
"""


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_no_file_gets_the_number_of_a_closed_standard_file(closed: str, tmp_path: Path) -> None:
    result = tmp_path / "result"
    command = ["sh", "-c", f'"$0" "$@" {closed}', sys.executable, "-c", PRINT_FIRST_FREE]
    done = subprocess.run([*command, str(result)], check=False, timeout=HANG_S)
    assert done.returncode == 0
    assert int(result.read_text()) > 2


def test_a_closed_output_is_no_damage_of_a_campaign(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "wattwire", "run", "--resume", str(tmp_path)]
    done = subprocess.run(
        ["sh", "-c", '"$0" "$@" >&-', *words],
        stderr=subprocess.PIPE, text=True, check=False, timeout=HANG_S,
    )  # fmt: skip
    assert "AttributeError" not in done.stderr and "ValueError" not in done.stderr
