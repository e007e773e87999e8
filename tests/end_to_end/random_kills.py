"""Kill one process of a short campaign at a random time, resume, and check for faults.

`python -m tests.end_to_end.random_kills --kills 59 [--pipeline | --exec | --service NAME |
--cell CELL [--server-cell CELL] [--pattern PATTERN]] [--rung v2|none] [--user UID] [--kind KIND …]
[--seed N]` repeats that for each kind and prints the observations; 59 kills without a failure mean
that fewer than 5 % fail (95 % confidence). Only processes of its own campaigns are killed, by id.

KIND is a process of wattwire, a role of nodes, a service of the middleware, or a program that any
of them executes, such as the device of a node. A campaign through a bridge of a middleware, for
example: `--cell rosbridge/rospy --server-cell rosbridge/python --pattern pingpong --kind bridge`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
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
from wattwire.model.verdict import Outcome
from wattwire.rig.layer_library import FOLDER_VARIABLE
from wattwire.run.crash import VARIABLE, descendants, programs_of, words_of

KINDS = ("controller", "agent", "guard", "node", "mosquitto")
EXEC_KINDS = ("controller", "agent", "guard", "bash")
PIPELINE_KINDS = ("controller", "agent", "source", "relay", "sink")
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
DELAY_MAX_S = 3.0
"""Default of the maximum delay (s) of a kill after the first victim appears."""
UNDISTURBED = ("done", "valid", Outcome.COMPLETED.value)
"""State, verdict and outcome of an attempt in which nothing was killed."""


SHARED_MEMORY = Path("/dev/shm")
LOOK_PERIOD_S = 0.1


class Family(dict[int, "str | None"]):
    """The start time of each descendant of a campaign's controllers, by process id.

    `files` maps the files in /dev/shm that the descendants created to their inodes: files that one
    of them has mapped or opened when they are first seen, and files named after these.
    """

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[Path, int] = {}
        self._of_others, self._looked_s = set(shared_memory().values()), 0.0
        self._unassigned: set[int] = set()

    def add(self, pids: Iterable[int]) -> None:
        """Add processes, and at most once per LOOK_PERIOD_S the files that they use."""
        pids = list(pids)
        self.update((pid, born(pid)) for pid in pids)
        if time.monotonic() < self._looked_s + LOOK_PERIOD_S:
            return
        self._looked_s = time.monotonic()
        new = {path: inode for path, inode in shared_memory().items()
               if inode not in self._of_others}  # fmt: skip
        used = {inode for pid in pids for inode in shared_memory_used_by(pid)}
        own = [path.name for path, inode in new.items() if inode in used]
        self.files |= {p: i for p, i in new.items() if any(name in p.name for name in own)}
        # A file without a user for two looks is not of the family, even if it uses the file later.
        unassigned = set(new.values()) - set(self.files.values())
        self._of_others |= unassigned & self._unassigned
        self._unassigned = unassigned

    def files_left(self) -> list[str]:
        """Return the files of the family that still exist and that no process uses."""
        present = shared_memory()
        left = {inode: p.name for p, inode in self.files.items() if present.get(p) == inode}
        pids = (int(name) for name in os.listdir("/proc") if name.isdecimal()) if left else ()
        used = {inode for pid in pids for inode in shared_memory_used_by(pid)}
        return [name for inode, name in left.items() if inode not in used]


def shared_memory() -> dict[Path, int]:
    """Return the inode of each file in /dev/shm."""
    inodes = {}
    for path in SHARED_MEMORY.iterdir():
        with contextlib.suppress(OSError):  # it has just been removed
            inodes[path] = path.stat().st_ino
    return inodes


def shared_memory_used_by(pid: int) -> set[int]:
    """Return the inodes of the files in /dev/shm that a process has mapped or opened."""
    inodes = set()
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
            if f" {SHARED_MEMORY}/" in line:
                inodes.add(int(line.split()[4]))
        for entry in os.scandir(f"/proc/{pid}/fd"):
            if os.readlink(entry).startswith(f"{SHARED_MEMORY}/"):
                inodes.add(entry.stat().st_ino)
    return inodes


Observer = Callable[[list[int]], object]


def study_of(cell: str, pattern: str = "topic", server_cell: str = "") -> str:
    """Return the study of a cell, or of two cells with a client and a server."""
    fixed = f'cell = "{cell}"'
    if server_cell:
        fixed += f'\nserver_cell = "{server_cell}"'
    return (
        STUDY.replace("through a broker", f"of {cell}")
        .replace('middleware = "mqtt"\nlanguage = "python"', fixed)
        .replace('pattern = "topic"', f'pattern = "{pattern}"')
    )


@dataclass
class Setting:
    """The cgroup rung, user, interpreter, environment and study of the campaigns."""

    rung: str = ""
    user: int | None = None
    python: str = sys.executable
    environment: dict[str, str] = field(default_factory=dict)
    study: str = STUDY

    def start(self, folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
        """Start wattwire; all temporary files of the campaign appear in the folder `tmp`."""
        temporary = folder / "tmp"
        temporary.mkdir(exist_ok=True)
        if self.user is not None:
            os.chown(temporary, self.user, self.user)
        environment = {**os.environ, **self.environment, "TMPDIR": str(temporary)}
        if self.rung:
            environment["WATTWIRE_CGROUP"] = self.rung
        with (folder / "log").open("ab") as log:
            return subprocess.Popen(
                [self.python, "-m", "wattwire", *self.words(*arguments)],
                cwd=folder, env=environment, stdout=log, stderr=log,
                user=self.user, group=self.user,
                extra_groups=[] if self.user is not None else None,
            )  # fmt: skip

    def words(self, *arguments: str) -> tuple[str, ...]:
        """Return the command line of a campaign that starts or is resumed."""
        return (*arguments, "--plain", "--no-report")

    def victim(self, kind: str, controller: int) -> int | None:
        """Return a process of this kind, which belongs to a campaign; None without one."""
        return victim(kind, controller)

    def kill(self, kind: str, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def problems(self, folder: Path) -> list[str]:
        """Return what is wrong after a campaign with what does not belong to this machine."""
        return []


@dataclass
class ExecSetting(Setting):
    """A setting whose campaigns measure a command, with a child, instead of a study."""

    options: tuple[str, ...] = ("--baseline", "0.05s")
    measured: tuple[str, ...] = ("bash", "-c", "sleep 0.3 & sleep 0.3; wait")

    def words(self, *arguments: str) -> tuple[str, ...]:
        if "--resume" in arguments:
            return super().words(*arguments)
        folder = arguments[arguments.index("--campaign") + 1]
        options = (*self.options, "--repeat", "2", "--out", folder, "--no-report")
        return ("exec", *options, "--", *self.measured)


# -- who is who ----------------------------------------------------------------------------------


def victim(kind: str, controller: int) -> int | None:
    """Return a process of this kind: `controller` or a descendant of it; None without one.

    A kind may be the role of a node, the name of a service process, a program or the script of an
    interpreter. `profiled` is a node that records its layers.
    """
    if kind == "controller":
        return controller
    for pid in descendants(controller):
        words = words_of(pid)
        name = Path(words[0]).name if words else ""
        ours = name == "wattwire-agent"
        if kind == "agent" and ours and "serve" in words:
            return pid
        if kind == "guard" and ours and "guard" in words and any(descendants(pid)):
            return pid
        if "--spec" in words and not ours:
            spec = words[words.index("--spec") + 1]
            if kind == "node" or f"/out/{kind}-" in spec:
                return pid
            if kind == "profiled" and is_profiled(pid):
                return pid
        if not ours and kind in (*programs_of(words), service_at(pid)):
            return pid
    return None


def is_profiled(pid: int) -> bool:
    """Return whether a process records its layers."""
    with contextlib.suppress(OSError):
        return f"{FOLDER_VARIABLE}=".encode() in Path(f"/proc/{pid}/environ").read_bytes()
    return False


def service_at(pid: int) -> str | None:
    """Return the name of a run's service whose folder is the current one of a process."""
    with contextlib.suppress(OSError):
        folder = Path(os.readlink(f"/proc/{pid}/cwd"))
        if folder.parent.name == "out":  # the next part is `broker`, or `broker.try1` after a retry
            return folder.name.split(".")[0]
    return None


def sockets_held_by(pids: Iterable[int]) -> set[str]:
    """Return the inodes of the sockets that processes have open."""
    inodes = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            links = [os.readlink(entry) for entry in os.scandir(f"/proc/{pid}/fd")]
            inodes |= {link[8:-1] for link in links if link.startswith("socket:[")}
    return inodes


def open_ports(inodes: set[str]) -> list[str]:
    """Return the ports on which one of these sockets listens or receives, such as `tcp :1F90`."""
    ports = []
    for protocol in ("tcp", "tcp6", "udp", "udp6"):
        with contextlib.suppress(OSError):  # a kernel without IPv6
            for line in Path("/proc/net", protocol).read_text().splitlines()[1:]:
                _, local, _, state, *rest = line.split()
                if rest[5] in inodes and (state == "0A" or protocol.startswith("udp")):
                    ports.append(f"{protocol} :{local.rpartition(':')[2]}")
    return ports


def born(pid: int) -> str | None:
    """Return the start time of a process, to distinguish reuses of its id."""
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    return None


def ended(
    process: subprocess.Popen[bytes],
    family: Family,
    observe: Observer = lambda pids: None,
) -> bool:
    """Add all descendants of a process to `family` until it ends. Kill it after HANG_S.

    `observe` is called with the descendants at each time.
    """
    deadline = time.monotonic() + HANG_S
    while process.poll() is None:
        if time.monotonic() > deadline:
            process.kill()
            process.wait()
            return False
        pids = list(descendants(process.pid))
        family.add(pids)
        observe(pids)
        time.sleep(0.02)
    return True


# -- one kill ------------------------------------------------------------------------------------


@dataclass
class Seen:
    """Result of one kill: its time and phase, the problems, and reasons of incomplete attempts."""

    kind: str
    after_s: float
    phase: str
    problems: list[str]
    reasons: list[str] = field(default_factory=list)


def exposure_s(kind: str, setting: Setting, folder: Path, wait_s: float = 5.0) -> float:
    """Return the time (s) from the first victim to the end of a campaign without a kill.

    This campaign must leave nothing, either.
    """
    if setting.user is not None:
        os.chown(folder, setting.user, setting.user)
    (folder / "study.toml").write_text(setting.study)
    family, first_s = Family(), []
    arguments = ("run", str(folder / "study.toml"), "--campaign", str(folder / "c"))
    process = setting.start(folder, *arguments)

    def observe(_: list[int]) -> None:
        if not first_s and setting.victim(kind, process.pid) is not None:
            first_s.append(time.monotonic())

    is_ended = ended(process, family, observe)
    end_s = time.monotonic()
    assert is_ended and process.returncode == 0, (folder / "log").read_text()
    assert first_s, f"this campaign has no {kind}"
    problems = ledger(folder / "c") + left(folder, family, wait_s) + setting.problems(folder)
    assert problems == [], problems
    return end_s - first_s[0]


def kill_once(
    kind: str,
    setting: Setting,
    folder: Path,
    rng: random.Random,
    delay_max_s: float = DELAY_MAX_S,
) -> Seen | None:
    """Run, kill and resume one campaign; return None if it ended before the kill."""
    if setting.user is not None:
        os.chown(folder, setting.user, setting.user)
    study, campaign = folder / "study.toml", folder / "c"
    study.write_text(setting.study)
    process = setting.start(folder, "run", str(study), "--campaign", str(campaign))
    delay_s, kill_at_s = rng.uniform(0.0, delay_max_s), None
    began = time.monotonic()
    # Descendants of the agent leave its process tree when their parent ends, so record all of them.
    family = Family()
    target = None
    while process.poll() is None and target is None:
        family.add(descendants(process.pid))
        if kill_at_s is None or time.monotonic() >= kill_at_s:
            target = setting.victim(kind, process.pid)
        if target is not None and kill_at_s is None:
            kill_at_s, target = time.monotonic() + delay_s, None
        time.sleep(0.002)
    if target is None:
        return None
    phase = last_line(folder)
    after_s = time.monotonic() - began
    pids = list(descendants(process.pid))
    family.add(pids)
    inodes = sockets_held_by(pids)
    setting.kill(kind, target)
    problems = [] if ended(process, family) else ["the controller hangs after the kill"]
    problems += resume(setting, folder, campaign, family)
    problems += ledger(campaign)
    problems += left(folder, family, inodes=inodes) + setting.problems(folder)
    return Seen(kind, after_s, phase, problems, reasons_of(campaign))


def crashed(
    crash: str,
    setting: Setting,
    folder: Path,
    family: Family,
    observe: Observer = lambda pids: None,
) -> list[str]:
    """Run a campaign with a crash point (wattwire.run.crash); return the problems at its end."""
    (folder / "study.toml").write_text(setting.study)
    setting.environment = {**setting.environment, VARIABLE: crash}
    arguments = ("run", str(folder / "study.toml"), "--campaign", str(folder / "c"))
    process = setting.start(folder, *arguments)
    del setting.environment[VARIABLE]
    if not ended(process, family, observe):
        return ["the controller hangs after the kill"]
    is_killed = crash.startswith("controller@")
    # A command may go on without one of its processes.
    is_noticed = not is_killed and not (isinstance(setting, ExecSetting) and "/" in crash)
    problems = []
    if process.returncode != (-signal.SIGKILL if is_killed else 0):
        problems.append(f"the controller: {process.returncode}")
    with contextlib.closing(sqlite3.connect(folder / "c" / "journal.sqlite")) as db:
        attempts = db.execute("SELECT state, verdict, outcome FROM attempt").fetchall()
    if is_noticed and all(attempt == UNDISTURBED for attempt in attempts):
        problems.append("nothing was killed")
    return problems


def crash_once(crash: str, setting: Setting, folder: Path) -> list[str]:
    """Run a campaign with a crash point, resume it, and return the problems."""
    family = Family()
    inodes: set[str] = set()
    problems = crashed(
        crash, setting, folder, family, lambda pids: inodes.update(sockets_held_by(pids))
    )
    problems += resume(setting, folder, folder / "c", family)
    problems += ledger(folder / "c") + left(folder, family, inodes=inodes)
    return problems + setting.problems(folder)


def last_line(folder: Path, characters: int = 70) -> str:
    """Return the phase of a campaign, from its log."""
    lines = (folder / "log").read_text().splitlines()
    return lines[-1][:characters] if lines else "before the first word"


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
    if process.returncode == 0:
        return []
    return [f"the resumed controller: {process.returncode}, {last_line(folder, 300)}"]


def ledger(campaign: Path) -> list[str]:
    """Check that each planned run has one valid attempt, which is the last and has its files.

    An attempt that did not complete must have a reason.
    """
    problems = []
    with contextlib.closing(sqlite3.connect(campaign / "journal.sqlite")) as db:
        runs = [row[0] for row in db.execute("SELECT run FROM run")]
        for run in runs:
            rows = db.execute(
                "SELECT state, verdict, folder, outcome FROM attempt WHERE run = ? "
                "ORDER BY attempt", (run,)
            ).fetchall()  # fmt: skip
            done = [row for row in rows if row[0] == "done"]
            if any(row[0] == "begun" for row in rows):
                problems.append(f"{run}: an attempt is still open")
            if [row[1] for row in done].count("valid") != 1 or done[-1][1] != "valid":
                problems.append(f"{run}: attempts are {rows}")
            for _, verdict, name, outcome in done:
                attempt = campaign / "runs" / name
                if verdict == "failed":  # such an attempt keeps only its logs
                    continue
                if not (attempt / "messages.parquet").exists():
                    problems.append(f"{run}: the files of {name} are not there")
                reason = json.loads((attempt / "run.json").read_text())["outcome_detail"]
                if outcome != Outcome.COMPLETED.value and not reason:
                    problems.append(f"{run}: {name} has the outcome {outcome} without a reason")
    if len(runs) != 2:
        problems.append(f"{len(runs)} runs are planned, not 2")
    partial = [path.name for path in (campaign / "runs").glob(".*")]
    return problems + ([f"half-written: {partial}"] if partial else [])


def reasons_of(campaign: Path) -> list[str]:
    """Return the reasons of all attempts of a campaign that did not complete."""
    runs = [json.loads(path.read_text()) for path in campaign.glob("runs/*/run.json")]
    completed = Outcome.COMPLETED.value
    return [run["outcome_detail"] for run in runs if run["outcome"] != completed]


def left(
    folder: Path, family: Family, wait_s: float = 5.0, inodes: Iterable[str] = ()
) -> list[str]:
    """Return the leftovers of these campaigns after a wait, which ends when there are none.

    `inodes` are those of sockets that the campaigns had open.
    """
    tokens = tokens_below(folder)
    deadline = time.monotonic() + wait_s
    while True:
        found = {
            "process": marked_processes(tokens),
            "family": [str(words_of(p)) for p, b in family.items() if b and born(p) == b],
            "cgroup": [c for c in orphaned_cgroups() if int(c.rpartition("-")[2]) in family],
            "shared memory": [*shared_memory_of(tokens), *family.files_left()],
            "socket": sockets_of(tokens),
            "port": open_ports(set(inodes)),
            "temporary file": [path.name for path in (folder / "tmp").iterdir()],
            "recording": [str(path.parent) for path in folder.glob("c/runs/*/layers")],
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


def kill_kinds(kinds: Iterable[str], setting: Setting, kills: int, seed: int, folder: Path) -> int:
    """Kill each kind of process, print the observations, and return the exit code."""
    failed = 0
    for kind in kinds:
        bad, undisturbed = 0, folder / f"undisturbed-{kind}"
        undisturbed.mkdir()
        delay_max_s = exposure_s(kind, setting, undisturbed)
        kill = partial(kill_once, kind, setting, delay_max_s=delay_max_s)
        for seen in kill_many(kind, kills, kill, folder, seed):
            bad += bool(seen.problems)
            words = seen.problems or f"no fault, incomplete: {seen.reasons}"
            print(f"{kind} after {seen.after_s:.2f} s, at “{seen.phase}”: {words}", flush=True)
        failed += bad
        print(f"{kind}: {kills} kills, {bad} failed", flush=True)
    if failed:
        print(f"kept: {folder}")
        return 1
    shutil.rmtree(folder)
    print("nothing lost, nothing twice, nothing left")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=59)
    parser.add_argument("--kind", action="append")
    parser.add_argument("--service", choices=SERVICE_STUDIES, help="kill this service process")
    parser.add_argument("--cell", help="measure this cell; requires --kind")
    parser.add_argument("--server-cell", default="", help="measure this cell as the server")
    parser.add_argument("--pattern", default="topic")
    parser.add_argument("--pipeline", action="store_true", help="kill nodes of a pipeline")
    parser.add_argument("--exec", action="store_true", help="measure a command and its child")
    parser.add_argument("--rung", choices=["v2", "v1", "none"], default="")
    parser.add_argument("--user", type=int)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.cell and not options.kind:
        parser.error("--cell requires --kind")
    folder = Path(tempfile.mkdtemp(prefix="wattwire-kills-"))
    folder.chmod(0o755)
    setting = Setting(options.rung)
    if options.user is not None:
        (folder / "home").mkdir()
        os.chown(folder / "home", options.user, options.user)
        setting = Setting(
            "none", options.user, interpreter_of(options.user), environment_at(folder / "home")
        )
    kinds = options.kind or KINDS
    if options.pipeline:
        setting.study, kinds = PIPELINE, options.kind or PIPELINE_KINDS
    if options.exec:
        setting, kinds = ExecSetting(options.rung), options.kind or EXEC_KINDS
    if options.cell:
        setting.study = study_of(options.cell, options.pattern, options.server_cell)
    if options.service:
        setting.study, kinds = SERVICE_STUDIES[options.service], [options.service]
    return kill_kinds(kinds, setting, options.kills, options.seed, folder)


if __name__ == "__main__":
    raise SystemExit(main())
