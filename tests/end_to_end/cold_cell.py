"""A copy of a loopback cell with slow first calls, and a study that compares both."""

from __future__ import annotations

import shutil
from pathlib import Path

from wattwire.catalog import home

COLD_CALLS, COLD_US = 300, 2000
PLANTED = f"""
        if counter < {COLD_CALLS}:
            over_ns = time.thread_time_ns() + {COLD_US * 1000}
            while time.thread_time_ns() < over_ns:
                pass
"""
STUDY = """
title = "Slow at first"
[[question]]
id = "Q"
text = "Which answers sooner?"
factors = ["cell"]
responses = ["latency_p50_us", "cpu_us_per_message"]
[factors]
cell = ["loopback/python", "cold/python"]
[fixed]
pattern = "service"
loop = "closed"
count = 200
clients = 2
[plan]
blocks = 3
primary = "cell"
controls = false
baseline_s = 0.05
quiet_ms = 20
linger_ms = 100
quiet_wait_s = 0.0
retries = 0
[validity]
other_load_max = 1.0
steal_max = 1.0
missed_ticks_max = 1.0
stall_max_ms = 60000.0
"""


def plant(root: Path) -> dict[str, str]:
    """Write the cell cold/python and slow.toml to `root`; return the environment of the cell."""
    folder = root / "roots" / "middleware" / "cold"
    shutil.copytree(home() / "middleware" / "loopback" / "python", folder / "python")
    shutil.copy(home() / "middleware" / "loopback" / "middleware.toml", folder)
    link = folder / "python" / "link.py"
    text = link.read_text(encoding="utf-8")
    assert (place := "        self.count_message()\n        if") in text
    link.write_text(
        text.replace(place, place.replace("        if", PLANTED.lstrip("\n") + "        if"))
    )
    (root / "slow.toml").write_text(STUDY)
    return {"WATTWIRE_PATH": str(root / "roots")}
