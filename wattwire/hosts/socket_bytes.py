"""Read the bytes of a process's TCP connection on this machine."""

from __future__ import annotations

import re
import shutil
import subprocess

from wattwire.hosts.namespaces import SYSTEM_PATHS
from wattwire.rig.agent import Traffic

TIMEOUT_S = 5.0
_COUNTERS = re.compile(r"bytes_(sent|received):(\d+)")


def socket_traffic(pid: int) -> Traffic | None:
    """Return the bytes of a process's only TCP connection; None if the kernel does not show them.

    They include what TCP sent again, but no headers of TCP and IP.
    """
    ss = shutil.which("ss") or shutil.which("ss", path=":".join(SYSTEM_PATHS))
    if ss is None:
        return None
    try:
        done = subprocess.run(
            [ss, "-tinpOH"], capture_output=True, text=True, check=False, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return None
    return read_traffic(done.stdout, pid)


def read_traffic(text: str, pid: int) -> Traffic | None:
    """Return the bytes of a process in the output of `ss -tinpOH`, which has a line per socket."""
    lines = [line for line in text.splitlines() if f",pid={pid}," in line]
    if len(lines) != 1:
        return None
    counters = {name: int(value) for name, value in _COUNTERS.findall(lines[0])}
    # The kernel omits a counter that is 0.
    return Traffic(counters.get("sent", 0), counters.get("received", 0))
