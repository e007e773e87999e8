"""Run a Zenoh router: zenohd if it is on PATH, else a session of eclipse-zenoh in router mode.

Usage: router.py CONFIGURATION. Prints `router PROGRAM VERSION`; the exit code is 3 if zenohd is of
a series other than that of the nodes.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from importlib.metadata import version
from typing import NoReturn

import zenoh

SERIES = "1"
"""Major version of the nodes. Zenoh's protocol is stable only within a major version."""
OTHER_SERIES = 3
VERSION = re.compile(r"\bzenohd v?((\d+)\.\d+[\w.+-]*)")
"""The version in the output of `zenohd --version`, which may begin with a time and with colours."""


def main() -> int:
    configuration, program = sys.argv[1], shutil.which("zenohd")
    if program is None:
        return run_session(configuration)
    printed = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    match = VERSION.search(printed.stdout)
    if match is None or match[2] != SERIES:
        found = f"version {match[1]}" if match else "a program of an unknown version"
        sys.stderr.write(
            f"{program} is {found}; the nodes need zenohd of the series {SERIES}.x. Install one, "
            f"or remove it from PATH to route with eclipse-zenoh {version('eclipse-zenoh')}.\n"
        )
        return OTHER_SERIES
    print(f"router zenohd {match[1]}", flush=True)
    return run_program(program, configuration)


def run_program(program: str, configuration: str) -> NoReturn:
    os.execv(program, ["zenohd", "--config", configuration])


def run_session(configuration: str) -> int:
    """Route in this process until SIGTERM."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # before Zenoh starts its threads
    with zenoh.open(zenoh.Config.from_file(configuration)):
        print(f"router eclipse-zenoh {version('eclipse-zenoh')}", flush=True)
        signal.sigwait({signal.SIGTERM})
    return 0


if __name__ == "__main__":
    sys.exit(main())
