"""A node of udp/python. The one at hop `settings.lossy_hop` receives through the lossy proxy.

This node reports the endpoint of the proxy in place of its own, so the proxy drops messages of one
hop only; kit and cell are unchanged. The log of the proxy is proxy.json in the node's folder.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
HOST = "127.0.0.1"
LOSS = 0.1
LINES = 3
"""Descriptor of the node's lines (C-05)."""


def main() -> int:
    given = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
    out = Path(given["--out"])
    spec = json.loads(Path(given["--spec"]).read_text())
    lossy_hop = spec.pop("settings.lossy_hop")
    spec["declared.integer_settings"].remove("lossy_hop")
    own_spec = out / "udp.json"
    own_spec.write_text(json.dumps(spec))
    argv = [sys.executable, str(HERE / "udp" / "node.py"), "--spec", own_spec, "--out", out]
    if spec["hop"] != lossy_hop:
        os.execv(sys.executable, argv)
    return run_behind_proxy(argv, spec["payload.seed"], out / "proxy.json")


def run_behind_proxy(argv: list[str | Path], seed: int, log: Path) -> int:
    """Run the node and pass on its lines; return its exit code."""
    harness = os.dup(LINES)
    read_end, write_end = os.pipe()
    os.dup2(write_end, LINES)
    os.close(write_end)
    node = subprocess.Popen(argv, pass_fds=(LINES,))
    os.close(LINES)
    proxy = None
    with os.fdopen(read_end) as lines, os.fdopen(harness, "w", buffering=1) as to_harness:
        for line in lines:
            keyword, _, fields = line.partition(" ")
            if keyword == "LISTENING":
                target = json.loads(fields)["endpoints"][0].rpartition(":")[2]
                proxy, port = start_proxy(target, seed, log)
                fields = json.dumps({"endpoints": [f"{HOST}:{port}"]}) + "\n"
            to_harness.write(f"{keyword} {fields}")
    if proxy is not None:
        proxy.communicate()  # the end of its input ends the proxy
    return node.wait()


def start_proxy(target: str, seed: int, log: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Return the proxy in front of the port `target`, which is bound, and its port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    arguments = [port, target, 0, LOSS, seed, log]
    proxy = subprocess.Popen(
        [sys.executable, HERE / "proxy.py", *map(str, arguments)], stdin=subprocess.PIPE
    )
    while proxy.poll() is None and not is_bound(port):
        time.sleep(0.005)
    return proxy, port


def is_bound(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((HOST, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


if __name__ == "__main__":
    raise SystemExit(main())
