"""Kill a meter, or a process that reads it, at a random time of a campaign.

`python -m meters.watts_up.tests.kills --kills 59 [--kind KIND …] [--seed N]` does so as
random_kills does with other campaigns. A meter that is killed is unplugged: it has its own supply,
goes on as it was, and is plugged in again before the campaign is resumed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.end_to_end.random_kills import (
    Family,
    Setting,
    ended,
    kill_kinds,
    ledger,
    left,
    resume,
    study_of,
)

METER = "meter"
KINDS = (METER, "agent", "controller")
EMULATOR = Path(__file__).with_name("emulator.py")
POWER_W = "41.3"
INTERVAL_S = 7
"""The interval that the meter has before a campaign."""
WAS_SENDING = "the meter was sending already"
END_S = 5.0
"""Longest wait for the last commands to a meter."""


@dataclass
class MeteredSetting(Setting):
    """A setting whose campaigns read an emulated meter, which is plugged in when one starts."""

    study: str = field(default_factory=lambda: study_of("loopback/python"))
    pulled_at: str = ""
    """The command at which the cable is pulled the first time."""
    killed: str = ""
    """The kind of process that is killed."""
    _meter: subprocess.Popen[bytes] | None = None
    _was_left: bool = False
    """A campaign ended and left the meter logging."""

    def start(self, folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
        is_first = not (folder / "state").exists()
        if is_first:
            self._was_left = False
            (folder / "state").write_text(json.dumps([False, INTERVAL_S]))
        else:
            self._was_left = self._is_logging(folder)
        self._plug_in(folder, self.pulled_at if is_first else "")
        return super().start(folder, *arguments)

    def words(self, *arguments: str) -> tuple[str, ...]:
        if "--resume" in arguments:
            return super().words(*arguments)
        folder = Path(arguments[arguments.index("--campaign") + 1]).parent
        return super().words(*arguments, "--meter", f"watts_up={folder / METER}")

    def victim(self, kind: str, controller: int) -> int | None:
        if kind != METER:
            return super().victim(kind, controller)
        return self._meter.pid if self._meter else None

    def kill(self, kind: str, pid: int) -> None:
        self.killed = kind
        if kind == METER:
            self._link.unlink()  # as the system does, so that no other terminal has its name
        super().kill(kind, pid)

    def problems(self, folder: Path) -> list[str]:
        """Return what is wrong with the meter, and unplug it."""
        problems = []
        if self._is_logging(folder):
            problems.append("the meter is left logging")
        interval_s = json.loads((folder / "state").read_text())[1]
        # Only who has read the interval can restore it.
        if interval_s != INTERVAL_S and self.killed in ("", "controller") and not self.pulled_at:
            problems.append(f"the meter is left with an interval of {interval_s} s")
        if self._was_left and self.killed == "controller":
            problems.append("the controller's end left the meter logging")
        if self._was_left and WAS_SENDING not in (folder / "log").read_text():
            problems.append("no sentence says that the meter was left logging")
        self.unplug()
        return problems

    def unplug(self) -> None:
        if self._meter is not None:
            self._meter.kill()
            self._meter.wait()
            self._link.unlink(missing_ok=True)
            self._meter = None

    def _plug_in(self, folder: Path, pulled_at: str) -> None:
        if self._meter is not None and self._meter.poll() is None and self._link.exists():
            return
        self.unplug()
        self._link = folder / METER
        words = [POWER_W, str(self._link), str(folder / "state"), *([pulled_at] * bool(pulled_at))]
        self._meter = subprocess.Popen(
            [sys.executable, str(EMULATOR), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._meter.stdout is not None
        self._meter.stdout.readline()

    def _is_logging(self, folder: Path) -> bool:
        """Return whether the meter logs, after the time that its last commands need."""
        deadline_s = time.monotonic() + END_S
        while True:
            is_logging: bool = json.loads((folder / "state").read_text())[0]
            if not is_logging or time.monotonic() > deadline_s:
                return is_logging
            time.sleep(0.01)


def pull_once(command: str, folder: Path) -> tuple[list[str], str]:
    """Pull the meter's cable at a command in the first run, plug it in again, and resume.

    Return the problems, and what the controller said when the cable was pulled.
    """
    setting, family = MeteredSetting(pulled_at=command), Family()
    (folder / "study.toml").write_text(setting.study)
    arguments = ("run", str(folder / "study.toml"), "--campaign", str(folder / "c"))
    process = setting.start(folder, *arguments)
    problems = [] if ended(process, family) else ["the controller hangs without its meter"]
    said = (folder / "log").read_text()
    problems += resume(setting, folder, folder / "c", family)
    problems += ledger(folder / "c") + left(folder, family) + setting.problems(folder)
    return problems, said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=59)
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="wattwire-kills-meter-"))
    setting = MeteredSetting()
    try:
        return kill_kinds(options.kind or KINDS, setting, options.kills, options.seed, folder)
    finally:
        setting.unplug()


if __name__ == "__main__":
    sys.exit(main())
