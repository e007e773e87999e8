"""Relate the clocks of two machines, one of which gets planted rates, and note the truth.

Both machines write to a file of the host while they read their clocks. The host notes the times of
these writes by its own clock, so they relate both clocks independently of wattwire.

`python -m tests.machine.suite.clocks PPM` sets the rate of the clock of the machine that runs it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from tests.machine.suite.zones import OUT
from tools.sshd_rig import PRIVILEGE_SEPARATION
from wattwire.hosts import Hosts
from wattwire.hosts.clocks import ClockComparison
from wattwire.hosts.health.machine import clock_finding
from wattwire.model.rig import read_rig

ADDRESSES = {"here": "10.91.0.1", "far": "10.91.0.2"}
DEVICE = "eth0"
KEYS = OUT / "ssh"
"""Keys of the user and of the server in the other machine, which the host made."""
END = Path("/tmp/end")
RATES_PPM = (-200.0, 200.0)
WINDOW_S = 30.0
MARK_PERIOD_S = 0.2
LIMIT_S = 600.0
SERVER = """
HostKey {keys}/host_key
AuthorizedKeysFile {keys}/user_key.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
SetEnv "WATTWIRE_CACHE=/tmp/far-cache"
"""
CLIENT = """
Host far
HostName {address}
User root
IdentityFile {keys}/user_key
IdentitiesOnly yes
IdentityAgent none
UserKnownHostsFile /tmp/known_hosts
GlobalKnownHostsFile /dev/null
"""
CLOCK_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
ADJ_FREQUENCY = 2
PPM = 1 << 16
"""Unit of the frequency of adjtimex(2)."""


def far(folder: Path) -> None:
    """Be the other machine, until the first one makes the file END here."""
    _join("far")
    PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
    config = Path("/tmp/sshd_config")
    config.write_text(SERVER.format(keys=KEYS))
    with _marking(folder), (folder / "sshd.log").open("w") as log:
        server = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", str(config)], stderr=log)
        try:
            _wait_until(END.exists)
        finally:
            server.terminate()
            server.wait()


def clocks(folder: Path) -> None:
    """Write the relation of both clocks for each planted rate, and what `doctor` says."""
    _join("here")
    host_key = (KEYS / "host_key.pub").read_text()
    Path("/tmp/known_hosts").write_text(f"{ADDRESSES['far']} {host_key}")
    config = Path("/tmp/ssh_config")
    config.write_text(CLIENT.format(address=ADDRESSES["far"], keys=KEYS))
    _wait_until(_far_listens)
    # The first connection reads its programs from the host, which may take longer than wattwire's.
    subprocess.run(["ssh", "-F", str(config), "far", "true"], check=True)
    hosts = {
        "here": {"kind": "local", "interface": DEVICE},
        "far": {"kind": "ssh", "to": "far", "interface": DEVICE},
    }
    rig = {"ssh_config": str(config), "hosts": hosts, "networks": {"wire": {}}}
    relations = []
    with _marking(folder), Hosts(read_rig(rig, "rig.toml"), Path("/tmp/hosts-of-clocks")) as both:
        other = both.by_name["far"]
        said = clock_finding(other)
        for rate_ppm in RATES_PPM:
            plant = [sys.executable, "-m", __name__, str(rate_ppm)]
            code, output = other.command(plant, LIMIT_S, {"PYTHONPATH": os.environ["PYTHONPATH"]})
            if code:
                raise RuntimeError(f"{plant}: {output}")
            comparison = ClockComparison(other.agent, other.clock_address)
            comparison.exchange()
            with comparison.continued():
                time.sleep(WINDOW_S)
            comparison.exchange()
            relations.append({"rate_ppm": rate_ppm, "relation": asdict(comparison.relation())})
        other.command(["touch", str(END)], LIMIT_S)
    document = {"clock offset": said.evidence, "relations": relations}
    (folder / "relations.json").write_text(json.dumps(document, indent=1))


def _join(name: str) -> None:
    """Give this machine its address, and a clock with the rate of the host's.

    A kernel measures the rate of its TSC while it boots, which fails by far on a busy host.
    """
    CLOCK_SOURCE.write_text("hpet")
    subprocess.run(["/sbin/modprobe", "virtio_net"], check=True)
    _wait_until(Path(f"/sys/class/net/{DEVICE}").exists)
    for words in (f"addr add {ADDRESSES[name]}/24 dev {DEVICE}", f"link set {DEVICE} up"):
        subprocess.run(["/sbin/ip", *words.split()], check=True)


def _far_listens() -> bool:
    with contextlib.suppress(OSError), socket.create_connection((ADDRESSES["far"], 22), 5):
        return True
    return False


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"waited {LIMIT_S:.0f} s in vain")
        time.sleep(0.2)


@contextlib.contextmanager
def _marking(folder: Path) -> Iterator[None]:
    """Write a file of the host each period; note the clock before and after, and the host's time.

    Leave them in marks.json as [before, after, host's] in ns, of CLOCK_MONOTONIC and of the host's
    wall clock, which has steps of up to 10 ms.
    """
    ended = threading.Event()
    marks: list[tuple[int, int, int]] = []

    def mark() -> None:
        with (folder / "mark").open("wb", buffering=0) as file:
            while not ended.wait(MARK_PERIOD_S):
                before_ns = time.monotonic_ns()
                os.pwrite(file.fileno(), b"x", 0)
                after_ns = time.monotonic_ns()
                marks.append((before_ns, after_ns, os.fstat(file.fileno()).st_mtime_ns))

    thread = threading.Thread(target=mark, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        (folder / "marks.json").write_text(json.dumps(marks))


def set_rate(ppm: float) -> None:
    """Set the correction of the rate of this machine's clock (adjtimex)."""

    class Timex(ctypes.Structure):
        _fields_ = (
            ("modes", ctypes.c_uint), ("offset", ctypes.c_long), ("freq", ctypes.c_long),
            ("rest", ctypes.c_long * 32),
        )  # fmt: skip

    library = ctypes.CDLL(None, use_errno=True)
    request = Timex(modes=ADJ_FREQUENCY, freq=round(ppm * PPM))
    if library.adjtimex(ctypes.byref(request)) < 0:
        raise OSError(ctypes.get_errno(), "adjtimex")


if __name__ == "__main__":
    set_rate(float(sys.argv[1]))
