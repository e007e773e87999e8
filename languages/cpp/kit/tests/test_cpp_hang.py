"""Test that a C++ node ends although its middleware hangs after STOP."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

KIT = Path(__file__).resolve().parents[1]
VECTORS = KIT.parents[2] / "contract" / "vectors"
LINGER_S, SHUTDOWN_S = 0.3, 4.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed"),
]


def test_a_node_that_hangs_after_stop_still_writes_its_samples_and_done(tmp_path: Path) -> None:
    program = tmp_path / "hang"
    source = str(KIT / "tests" / "hang.cpp")
    build = ["g++", "-std=c++17", "-O0", "-pthread", f"-I{KIT}", source, "-o", str(program)]
    subprocess.run(build, check=True)
    valid = json.loads((VECTORS / "spec.json").read_text())["valid"][0]["spec"]
    changes = {
        "pattern": "topic", "role": "subscriber", "peers.nodes": [2], "payload.bytes": 128,
        "payload.seed": 7, "quiet_ms": 100, "linger_ms": int(LINGER_S * 1000),
    }  # fmt: skip
    (tmp_path / "spec.json").write_text(json.dumps({**valid, **changes}))
    # A shell gives the node descriptor 3.
    command = 'exec "$0" --spec "$1" --out "$2" 3>&1'
    node = subprocess.Popen(
        ["sh", "-c", command, str(program), str(tmp_path / "spec.json"), str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert node.stdin is not None
    node.stdin.write(f"GO {time.monotonic_ns() + 50_000_000}\n")
    node.stdin.flush()
    time.sleep(0.2)
    before_s = time.monotonic()
    node.stdin.write("STOP\n")
    node.stdin.flush()
    assert node.stdout is not None and node.stderr is not None
    line = node.stdout.readline()
    assert time.monotonic() - before_s >= LINGER_S + SHUTDOWN_S
    assert line.startswith("DONE ")
    done = json.loads(line.removeprefix("DONE "))
    assert (done["received"], done["recorded"], done["foreign"]) == (1, 1, 0)
    assert node.wait(timeout=60) == os.EX_OK
    assert "the middleware hung after STOP" in node.stderr.read()
    assert (tmp_path / "samples.bin").stat().st_size > 0
    node.stdin.close()
