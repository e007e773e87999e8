"""The pair runner removes the nodes that it built."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
COMPILER = '#!/bin/sh\nfor word in "$@"; do target=$word; done\ntouch "$target"\n'


def test_a_built_node_is_removed_at_exit(tmp_path):
    compiler, temporary = tmp_path / "bin" / "g++", tmp_path / "tmp"
    for folder in (compiler.parent, temporary):
        folder.mkdir()
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    code = "import pairs; print(pairs.command('loopback/cpp')[0])"
    built = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, check=True, text=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(temporary),
             "PATH": f"{compiler.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)},
    ).stdout.strip()  # fmt: skip
    assert Path(built).is_relative_to(temporary), "the node is outside the temporary folder"
    assert list(temporary.iterdir()) == []
