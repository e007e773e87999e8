"""Connect a station to an access point, with radios of the kernel, and record what `doctor` says.

The radios (mac80211_hwsim) exist in the kernel alone, and so does the signal, which is planted.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tools import sshd_rig
from wattwire.catalog import Catalog
from wattwire.catalog.rigs import load_rig
from wattwire.hosts import Hosts
from wattwire.hosts.health.checks import network_section

SIGNAL_DBM = -41
TRANSMITTED_DBM = 20
"""Power with which the radios send. A radio adds its file `rx_rssi` to that of a frame."""
STATION, ACCESS_POINT = "wlan0", "wlan1"
ADDRESSES = {STATION: "10.90.0.1/24", ACCESS_POINT: "10.90.0.2/24"}
HOST = "edge"
HOSTAPD = f"interface={ACCESS_POINT}\ndriver=nl80211\nssid=invented\nhw_mode=g\nchannel=1\n"
RIG = """
ssh_config = "{folder}/ssh_config"
[hosts]
robot = {{ kind = "local", interface = "wlan0" }}
edge = {{ kind = "ssh", to = "edge", interface = "wlan1" }}
[networks.wifi]
"""
CONNECTED_S = 60.0
STATES = ("on", "off")
"""States of power save at the station."""


def wifi(folder: Path) -> None:
    """Connect both hosts, and record the facts in each state of power save."""
    _run("/sbin/modprobe", "mac80211_hwsim", "radios=2")
    _run("mount", "-t", "debugfs", "debugfs", "/sys/kernel/debug")
    for path in Path("/sys/kernel/debug/ieee80211").glob("phy*/hwsim/rx_rssi"):
        # The kernel parses no negative number here.
        path.write_text(f"{(SIGNAL_DBM - TRANSMITTED_DBM) % 2**64}\n")
    inside = Path("/tmp/wifi")
    with sshd_rig.hosts([HOST], inside / "ssh") as pids:
        entry = ["nsenter", f"--target={pids[HOST]}", "--net", "--"]
        radio = Path(f"/sys/class/net/{ACCESS_POINT}/phy80211/name").read_text().strip()
        _run("iw", "phy", radio, "set", "netns", str(pids[HOST]))
        _run(*entry, "ip", "link", "set", ACCESS_POINT, "up")
        _run(*entry, "ip", "addr", "add", ADDRESSES[ACCESS_POINT], "dev", ACCESS_POINT)
        (inside / "hostapd.conf").write_text(HOSTAPD)
        with (folder / "hostapd.log").open("w") as log:
            hostapd = subprocess.Popen(
                [*entry, "hostapd", str(inside / "hostapd.conf")], stdout=log, stderr=log
            )
        try:
            _run("ip", "link", "set", STATION, "up")
            _run("ip", "addr", "add", ADDRESSES[STATION], "dev", STATION)
            _connect()
            _send()
            _record(folder, inside, entry)
        finally:
            hostapd.terminate()
            hostapd.wait()


def _record(folder: Path, inside: Path, entry: list[str]) -> None:
    """Write the findings of `doctor --rig` on the network, and the outputs of `iw` around them."""
    rig = inside / "rig.toml"
    rig.write_text(RIG.format(folder=inside / "ssh"))
    # The first connection reads its programs from the host, which may take longer than wattwire's.
    _run("ssh", "-F", str(inside / "ssh/ssh_config"), HOST, "true")
    with Hosts(load_rig(rig, Catalog()), inside / "hosts") as hosts:
        for state in STATES:
            _run("iw", "dev", STATION, "set", "power_save", state)
            document: dict[str, Any] = {"before": _iw(entry)}
            findings = network_section(hosts, "wifi", inside / state)
            document |= {"after": _iw(entry), "findings": [asdict(item) for item in findings]}
            (folder / f"{state}.json").write_text(json.dumps(document, indent=1))


def _connect() -> None:
    """Join the network of the access point. Raise TimeoutError if that takes too long."""
    deadline_s = time.monotonic() + CONNECTED_S
    while "Connected to" not in _output("iw", "dev", STATION, "link"):
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"{STATION} did not connect within {CONNECTED_S:.0f} s")
        # It fails while the access point is not there, or an earlier attempt is not over.
        _output("iw", "dev", STATION, "connect", "invented")
        time.sleep(2)


def _send() -> None:
    """Send frames, so that the station has a bitrate."""
    address = ADDRESSES[ACCESS_POINT].partition("/")[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(50):
            sender.sendto(bytes(500), (address, 9))
            time.sleep(0.05)


def _iw(entry: list[str]) -> dict[str, str]:
    """Return what `iw` prints about the devices of both hosts, by device and question."""
    questions = (("get", "power_save"), ("link",))
    prefixes = {STATION: [], ACCESS_POINT: entry}
    return {
        f"{device} {question[-1]}": _output(*prefix, "iw", "dev", device, *question)
        for device, prefix in prefixes.items()
        for question in questions
    }


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
