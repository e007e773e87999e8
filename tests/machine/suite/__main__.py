"""Run steps inside the test machine: `python -m tests.machine.suite STEP …`.

A step leaves files in a folder of its name, below the folder of results. The host judges them.
"""

from __future__ import annotations

import sys
import time
import traceback
from pathlib import Path

from tests.machine.suite import clocks, links, measuring, rights, wifi
from tests.machine.suite.zones import OUT

STEPS = {
    "doctor": rights.doctor,
    "rights": rights.rights,
    "wraps": measuring.wraps,
    "additivity": measuring.additivity,
    "battery": measuring.battery,
    "held": measuring.held,
    "campaign": measuring.campaign,
    "ros2_energy": measuring.ros2_energy,
    "links": links.links,
    "wifi": wifi.wifi,
    "clocks": clocks.clocks,
    "far": clocks.far,
}


def main(names: list[str]) -> int:
    """Run each step and print its duration. Return the number of steps that failed."""
    failed = 0
    for name in names:
        folder: Path = OUT / name
        folder.mkdir()
        begun_s = time.monotonic()
        try:
            STEPS[name](folder)
        except Exception:
            failed += 1
            traceback.print_exc(file=sys.stdout)
        print(f"{name}: {time.monotonic() - begun_s:.0f} s", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
