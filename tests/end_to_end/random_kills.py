"""Kill one process of a short campaign at a random time, resume, and check for faults.

`python -m tests.end_to_end.random_kills --kills 59 [--pipeline | --service NAME] [--rung v2|none]
[--user UID] [--kind KIND …] [--seed N]` repeats that for each kind and prints the observations; 59
kills without a failure mean that fewer than 5 % fail (95 % confidence). Only processes of its own
campaigns are killed, by id.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.end_to_end.conftest import (
    environment_at,
    interpreter_of,
    marked_processes,
    orphaned_cgroups,
    shared_memory_of,
    sockets_of,
    tokens_below,
)

KINDS = ("controller", "agent", "guard", "node", "mosquitto")
PIPELINE_KINDS = ("controller", "agent", "source", "relay", "sink")
SERVICE_FILES = {"broker": "mosquitto.conf", "router": "router.json5"}
"""Service process → the file in its arguments, by which it is recognised."""
STUDY = """
title = "Two short runs through a broker"
[factors]
payload_bytes = [8, 64]
[fixed]
middleware = "mqtt"
language = "python"
pattern = "topic"
rate_hz = 50
[plan]
blocks = 1
controls = false
duration_s = 0.2
baseline_s = 0.05
linger_ms = 100
quiet_ms = 30
retries = 2
quiet_wait_s = 0.0
[validity]
other_load_max = 1.0
steal_max = 1.0
missed_ticks_max = 1.0
stall_max_ms = 60000.0
"""
PIPELINE = (
    STUDY.replace("through a broker", "of a pipeline")
    .replace('middleware = "mqtt"', 'middleware = "loopback"')
    .replace('pattern = "topic"', 'pattern = "pipeline"\nnodes = 4')
)
ROUTED = (
    STUDY.replace("through a broker", "through a router")
    .replace('middleware = "mqtt"', 'middleware = "zenoh"\n"settings.via" = "router"')
)  # fmt: skip
SERVICE_STUDIES = {"broker": STUDY, "router": ROUTED}
HANG_S = 120.0
CAMPAIGN_S = 4.0
"""Maximum delay (s) of a kill. The kill waits longer if there is no victim at that time."""


Family = dict[int, str | None]
"""The start time of each descendant of a campaign's controllers, by process id."""


@dataclass
class Setting:
    """The cgroup rung, user, interpreter, environment and study of the campaigns."""

    rung: str = ""
    user: int | None = None
    python: str = sys.executable
    environment: dict[str, str] = field(default_factory=dict)
    study: str = STUDY

    def start(self, folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, **self.environment}
        if self.rung:
            environment["WATTWIRE_CGROUP"] = self.rung
        with (folder / "log").open("ab") as log:
            return subprocess.Popen(
                [self.python, "-m", "wattwire", *arguments, "--plain", "--no-report"],
                cwd=folder, env=environment, stdout=log, stderr=log,
                user=self.user, group=self.user,
                extra_groups=[] if self.user is not None else None,
            )  # fmt: skip


# -- who is who ----------------------------------------------------------------------------------


def children(pid: int) -> Iterator[int]:
    """Return all descendants of a process, parents first."""
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield int(child)
                yield from children(int(child))


def words_of(pid: int) -> list[str]:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return []


def victim(kind: str, controller: int) -> int | None:
    """Return a process of this kind: `controller` or a descendant of it; None without one.

    A kind may be the role of a node or the name of a service process.
    """
    if kind == "controller":
        return controller
    for pid in children(controller):
        words = words_of(pid)
        name = Path(words[0]).name if words else ""
        ours = name == "wattwire-agent"
        if kind == "agent" and ours and "serve" in words:
            return pid
        if kind == "guard" and ours and "guard" in words and any(children(pid)):
            return pid
        if "--spec" in words and not ours:
            spec = words[words.index("--spec") + 1]
            if kind == "node" or f"/out/{kind}-" in spec:
                return pid
        if kind == name:
            return pid
        if kind in SERVICE_FILES and not ours and any(SERVICE_FILES[kind] in w for w in words):
            return pid
    return None


def born(pid: int) -> str | None:
    """Return the start time of a process, to distinguish reuses of its id."""
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    return None


def ended(process: subprocess.Popen[bytes], family: Family) -> bool:
    """Add all descendants of a process to `family` until it ends. Kill it after HANG_S."""
    deadline = time.monotonic() + HANG_S
    while process.poll() is None:
        if time.monotonic() > deadline:
            process.kill()
            process.wait()
            return False
        family |= {pid: born(pid) for pid in children(process.pid)}
        time.sleep(0.02)
    return True


# -- one kill ------------------------------------------------------------------------------------


@dataclass
class Seen:
    """Result of one kill: its time and phase, and the problems afterwards."""

    kind: str
    after_s: float
    phase: str
    problems: list[str]


def kill_once(kind: str, setting: Setting, folder: Path, rng: random.Random) -> Seen | None:
    """Run, kill and resume one campaign; return None if it ended before the kill."""
    if setting.user is not None:
        os.chown(folder, setting.user, setting.user)
    study, campaign = folder / "study.toml", folder / "c"
    study.write_text(setting.study)
    process = setting.start(folder, "run", str(study), "--campaign", str(campaign))
    wait_s = rng.uniform(0.0, CAMPAIGN_S)
    began = time.monotonic()
    # Descendants of the agent leave its process tree when their parent ends, so record all of them.
    family: Family = {}
    target = None
    while process.poll() is None and target is None:
        family |= {pid: born(pid) for pid in children(process.pid)}
        if time.monotonic() - began >= wait_s:
            target = victim(kind, process.pid)
        time.sleep(0.002)
    if target is None:
        return None
    phase = last_line(folder)
    after_s = time.monotonic() - began
    family |= {pid: born(pid) for pid in children(process.pid)}
    with contextlib.suppress(ProcessLookupError):
        os.kill(target, signal.SIGKILL)
    problems = [] if ended(process, family) else ["the controller hangs after the kill"]
    problems += resume(setting, folder, campaign, family)
    problems += ledger(campaign)
    problems += left(folder, family)
    return Seen(kind, after_s, phase, problems)


def last_line(folder: Path) -> str:
    """Return the phase of a campaign, from its log."""
    lines = (folder / "log").read_text().splitlines()
    return lines[-1][:70] if lines else "before the first word"


def resume(setting: Setting, folder: Path, campaign: Path, family: Family) -> list[str]:
    """Resume the campaign, or restart it if it was killed before its plan was written."""
    planned = False
    if (campaign / "journal.sqlite").exists():
        with contextlib.closing(sqlite3.connect(campaign / "journal.sqlite")) as db:
            tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
            rows = "SELECT 1 FROM meta WHERE key = 'identity'"
            planned = "meta" in tables and db.execute(rows).fetchone() is not None
    arguments = ("run", "--resume", str(campaign))
    if not planned:
        subprocess.run(["rm", "-rf", str(campaign)], check=True)
        arguments = ("run", str(folder / "study.toml"), "--campaign", str(campaign))
    process = setting.start(folder, *arguments)
    if not ended(process, family):
        return ["the resumed controller hangs"]
    return [] if process.returncode == 0 else [f"the resumed controller: {process.returncode}"]


def ledger(campaign: Path) -> list[str]:
    """Check that each planned run has one valid attempt, which is the last and has its files."""
    problems = []
    with contextlib.closing(sqlite3.connect(campaign / "journal.sqlite")) as db:
        runs = [row[0] for row in db.execute("SELECT run FROM run")]
        for run in runs:
            rows = db.execute(
                "SELECT state, verdict, folder FROM attempt WHERE run = ? ORDER BY attempt", (run,)
            ).fetchall()
            done = [row for row in rows if row[0] == "done"]
            if any(row[0] == "begun" for row in rows):
                problems.append(f"{run}: an attempt is still open")
            if [row[1] for row in done].count("valid") != 1 or done[-1][1] != "valid":
                problems.append(f"{run}: attempts are {rows}")
            for _, verdict, name in done:
                is_there = (campaign / "runs" / name / "messages.parquet").exists()
                if not is_there and verdict != "failed":  # such an attempt keeps only its logs
                    problems.append(f"{run}: the files of {name} are not there")
    if len(runs) != 2:
        problems.append(f"{len(runs)} runs are planned, not 2")
    partial = [path.name for path in (campaign / "runs").glob(".*")]
    return problems + ([f"half-written: {partial}"] if partial else [])


def left(folder: Path, family: Family, wait_s: float = 5.0) -> list[str]:
    """Return the leftovers of these campaigns after a wait, which ends when there are none."""
    tokens = tokens_below(folder)
    deadline = time.monotonic() + wait_s
    while True:
        found = {
            "process": marked_processes(tokens),
            "family": [str(words_of(p)) for p, b in family.items() if b and born(p) == b],
            "cgroup": [c for c in orphaned_cgroups() if int(c.rpartition("-")[2]) in family],
            "shared memory": shared_memory_of(tokens),
            "socket": sockets_of(tokens),
        }
        problems = [f"left behind, {kind}: {names}" for kind, names in found.items() if names]
        if not problems or time.monotonic() > deadline:
            return problems
        time.sleep(0.05)


def kill_many(
    kind: str,
    kills: int,
    kill: Callable[[Path, random.Random], Seen | None],
    folder: Path,
    seed: int,
) -> Iterator[Seen]:
    """Call `kill` for one kind until it has killed `kills` times, each time in a new folder.

    It returns None if its campaign ended before the kill. Folders of failures are preserved.
    """
    rng = random.Random(f"{seed}:{kind}")
    done = 0
    while done < kills:
        with tempfile.TemporaryDirectory(prefix=f"kill-{kind}-", dir=folder) as name:
            place = Path(name)
            seen = kill(place, rng)
            if seen is not None and seen.problems:
                place.rename(folder / f"failed-{kind}-{done}")
                place.mkdir()  # the context removes this folder
        if seen is not None:
            done += 1
            yield seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=59)
    parser.add_argument("--kind", action="append", choices=(*KINDS, *PIPELINE_KINDS))
    parser.add_argument("--service", choices=SERVICE_STUDIES, help="kill this service process")
    parser.add_argument("--pipeline", action="store_true", help="kill nodes of a pipeline")
    parser.add_argument("--rung", choices=["v2", "v1", "none"], default="")
    parser.add_argument("--user", type=int)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="wattwire-kills-"))
    folder.chmod(0o755)
    setting = Setting(options.rung)
    if options.user is not None:
        (folder / "home").mkdir()
        os.chown(folder / "home", options.user, options.user)
        setting = Setting(
            "none", options.user, interpreter_of(options.user), environment_at(folder / "home")
        )
    if options.pipeline:
        setting.study = PIPELINE
    kinds = options.kind or (PIPELINE_KINDS if options.pipeline else KINDS)
    if options.service:
        setting.study, kinds = SERVICE_STUDIES[options.service], [options.service]
    failed = 0
    for kind in kinds:
        bad = 0
        kill = partial(kill_once, kind, setting)
        for seen in kill_many(kind, options.kills, kill, folder, options.seed):
            bad += bool(seen.problems)
            if seen.problems:
                print(f"{kind} after {seen.after_s:.2f} s, at “{seen.phase}”: {seen.problems}",
                      flush=True)  # fmt: skip
        failed += bad
        print(f"{kind}: {options.kills} kills, {bad} failed", flush=True)
    if failed:
        print(f"kept: {folder}")
        return 1
    shutil.rmtree(folder)
    print("nothing lost, nothing twice, nothing left")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
