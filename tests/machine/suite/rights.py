"""Record what the agent and `doctor` say about the zones, for users with and without rights."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.machine.suite.zones import zones
from wattwire.rig.agent import PROTOCOL, find_agent

PYTHON_M = (sys.executable, "-m", "wattwire")
USER_ID = 65534
RULES = Path("/etc/udev/rules.d/70-wattwire.rules")
GROUP = "wattwire"


def doctor(folder: Path) -> None:
    """Write what `wattwire doctor` prints with the zones."""
    with zones():
        result = subprocess.run([*PYTHON_M, "doctor"], capture_output=True, text=True, check=False)
    (folder / "doctor.txt").write_text(result.stdout + result.stderr, encoding="utf-8")


def rights(folder: Path) -> None:
    """Write the state of the meter for root and for a user before and after each grant."""
    states: dict[str, dict[str, Any]] = {}
    with zones():
        states["root"] = powercap(0, 0)
        states["user"] = powercap(USER_ID, USER_ID)
        command = states["user"].get("grant", "").removeprefix("sudo ")
        subprocess.run(["sh", "-c", command], check=True)
        states["user after the grant"] = powercap(USER_ID, USER_ID)
    with zones():
        states["user after the next start"] = powercap(USER_ID, USER_ID)
    subprocess.run(["/usr/sbin/groupadd", "--force", GROUP], check=True)
    rules = subprocess.run(
        [*PYTHON_M, "doctor", "--print-udev"], stdout=subprocess.PIPE, check=True
    )
    RULES.write_bytes(rules.stdout)
    subprocess.run(["/lib/systemd/systemd-udevd", "--daemon"], check=True)
    with zones():
        subprocess.run(["/bin/udevadm", "settle"], check=True)
        group = int(Path("/etc/group").read_text().split(f"\n{GROUP}:")[1].split(":")[1])
        states["member of the group"] = powercap(USER_ID, group)
        states["no member of the group"] = powercap(USER_ID, USER_ID)
    subprocess.run(["/bin/udevadm", "control", "--exit"], check=True)
    (folder / "states.json").write_text(json.dumps(states, indent=1), encoding="utf-8")


def powercap(user: int, group: int) -> dict[str, Any]:
    """Return what the hello of an agent of this user says about the meter."""
    home = Path("/tmp/home") / f"{user}-{group}"
    home.mkdir(parents=True, exist_ok=True)
    os.chmod(home.parent, 0o755)
    os.chown(home, user, group)
    binary = shutil.copy2(find_agent(), "/tmp/home/agent")
    hello = {"id": 1, "op": "hello", "protocol": PROTOCOL, "state": str(home)}
    result = subprocess.run(
        [binary, "serve"], input=json.dumps(hello) + "\n", stdout=subprocess.PIPE, text=True,
        env={"HOME": str(home), "WATTWIRE_CACHE": str(home / "cache"), "PATH": os.environ["PATH"]},
        cwd=home, user=user, group=group, extra_groups=(), check=False,
    )  # fmt: skip
    reply = json.loads(result.stdout.splitlines()[0])
    (meter,) = [m for m in reply["meters"] if m["name"] == "powercap"]
    return dict(meter)
