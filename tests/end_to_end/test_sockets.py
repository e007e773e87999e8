"""Test that nodes of one machine listen only on its loopback interface."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.end_to_end.random_kills import descendants, words_of

pytestmark = pytest.mark.slow

CELLS = ("udp/python", "cyclonedds/python")
MORE_CELLS = ("udp/cpp", "udp/rust", "cyclonedds/cpp", "fastdds/cpp")
STUDY = """
title = "Sockets"
[factors]
cell = ["{cell}"]
[fixed]
pattern = "{pattern}"
rate_hz = 50
[plan]
blocks = 1
controls = false
duration_s = 1.5
baseline_s = 0.05
retries = 0
"""


def sockets_of_nodes(controller: int) -> dict[str, str]:
    """Return inode → program of all open sockets of the controller's nodes."""
    found = {}
    for pid in descendants(controller):
        words = words_of(pid)
        if "--spec" not in words or Path(words[0]).name == "wattwire-agent":
            continue
        with contextlib.suppress(OSError):
            for handle in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    target = os.readlink(handle)
                    if target.startswith("socket:["):
                        found[target[8:-1]] = words[words.index("--spec") + 1]
    return found


def datagram_sockets() -> dict[str, str]:
    """Return inode → local address of all IPv4 datagram sockets; a bound device follows a %."""
    words = ["ss", "-H", "-u", "-a", "-n", "-e"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found = {}
    for line in done.stdout.splitlines():
        fields = line.split()
        inode = next((f[4:] for f in fields if f.startswith("ino:")), "")
        found[inode] = fields[3]
    return found


@pytest.mark.parametrize("pattern", ["service", pytest.param("topic", marks=pytest.mark.matrix)])
@pytest.mark.parametrize(
    "cell", [*CELLS, *(pytest.param(cell, marks=pytest.mark.matrix) for cell in MORE_CELLS)]
)
def test_no_datagram_socket_listens_on_all_interfaces(cell, pattern, cli, tmp_path):
    if shutil.which("ss") is None:
        pytest.skip("ss is not installed: it tells which device a socket is bound to")
    study = tmp_path / "study.toml"
    study.write_text(STUDY.format(cell=cell, pattern=pattern))
    process = cli.start("run", study, "--campaign", tmp_path / "c", "--plain", "--no-report")
    seen: dict[str, str] = {}
    while process.poll() is None:
        owners, addresses = sockets_of_nodes(process.pid), datagram_sockets()
        seen |= {f"{owners[i]} {addresses[i]}": addresses[i] for i in owners if i in addresses}
        time.sleep(0.1)
    out, err = process.communicate()
    if process.returncode == 3 and not seen:
        pytest.skip(err)
    assert seen, f"no node with a datagram socket was seen: {out}{err}"
    open_wide = sorted(told for told, address in seen.items() if address.startswith("0.0.0.0:"))
    assert open_wide == []
