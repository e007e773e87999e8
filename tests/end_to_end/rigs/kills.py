"""Kill one process of a short campaign on a rig at a random time, resume, and check for faults.

`python -m tests.end_to_end.rigs.kills --kills 59 [--secured] [--only KIND …] [--seed N]` repeats
that for each kind and prints the observations, as random_kills does on one host. Controller, agent,
node and emulator belong to a campaign on two namespaces with an emulated link, `bridge` to one
whose hosts a bridge joins, `ssh` and `sshd` to one on two hosts over ssh. With --secured, campaigns
are secured and have a broker, kinds that begin with `far-` are processes on hosts over ssh, and no
private key may be left or be in a bundle. Needs root.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.end_to_end.conftest import tokens_below
from tests.end_to_end.random_kills import (
    STUDY,
    Family,
    Seen,
    Setting,
    born,
    crashed,
    descendants,
    ended,
    exposure_s,
    kill_many,
    last_line,
    ledger,
    left,
    reasons_of,
    resume,
    words_of,
)
from tests.end_to_end.rigs.ssh_machines import Machines, machines_over_ssh
from wattwire.model.paths import cache_folder
from wattwire.model.verdict import Outcome
from wattwire.store import Campaign
from wattwire.store.bundle import PRIVATE_KEY

LINK_KINDS = ("controller", "agent", "node", "emulator")
BRIDGE_KINDS = ("bridge",)
SSH_KINDS = ("ssh", "sshd")
FAR = "far-"
SECURED_KINDS = (
    *LINK_KINDS, "guard", "mosquitto", f"{FAR}agent", f"{FAR}node", f"{FAR}mosquitto", *SSH_KINDS,
)  # fmt: skip
HOSTS = ("robot", "edge")
PLACEMENT = """
[placements.apart]
sender = "robot"
receiver = "edge"
relay = "edge"
service = "edge"
"""
LINK_RIG = """
[hosts]
robot = {kind = "netns"}
edge = {kind = "netns"}
[networks.NETWORK]
link = "lossless-20ms"
near = ["robot"]
"""
RIG_STUDY = (
    (STUDY + "link_late_max_ms = 60000.0\n")
    .replace("through a broker", "between hosts")
    .replace('middleware = "mqtt"', 'middleware = "udp"\nplacement = "apart"\nnetwork = "NETWORK"')
)
BRIDGED_STUDY = (
    RIG_STUDY.replace('middleware = "udp"', 'middleware = "ros2"\nbridge = "ros2-zenoh"\nnodes = 3')
    .replace('pattern = "topic"', 'pattern = "pipeline"')
    .replace("linger_ms = 100", "linger_ms = 500")
)
SECURED_STUDY = RIG_STUDY.replace(
    'middleware = "udp"', 'middleware = "mqtt"\n"settings.security" = "on"'
).replace("[plan]", "[plan]\nproof_runs = 0")
MESSAGES = 10
"""Messages of a run: 50 per second for 0.2 s."""
COUNTS = ("sent", "received_unique", "lost", "undelivered")
NAMESPACES = ("net", "mnt", "uts", "time", "ipc")
LEFT_S = 15.0
"""Longest wait for the end of what a campaign started."""


@dataclass
class RigSetting(Setting):
    """A setting whose campaigns run on a rig."""

    machines: Machines | None = None
    rig_study: str = RIG_STUDY
    network: str = field(default_factory=lambda: f"k{os.urandom(4).hex()}")
    """Name of the network and of its devices, which no other program uses."""

    def prepare(self, folder: Path) -> None:
        """Write the rig and the study."""
        rig = LINK_RIG if self.machines is None else self.machines.rig
        rig = (rig + PLACEMENT).replace("NETWORK", self.network)
        (folder / "rig.toml").write_text(rig)
        self.study = self.rig_study.replace("NETWORK", self.network)

    @property
    def attempts(self) -> Path:
        """Return the folder of the attempts' private keys and files on the hosts."""
        return (
            cache_folder() / "attempts" if self.machines is None else self.machines.server.attempts
        )

    def start(self, folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
        rig = () if "--resume" in arguments else ("--rig", str(folder / "rig.toml"))
        return super().start(folder, *arguments, *rig)


# -- victims and namespaces ----------------------------------------------------------------------


def is_kind(kind: str, words: list[str]) -> bool:
    """Return whether a descendant of the controller with these words is of a kind."""
    kind = kind.removeprefix(FAR)
    name = Path(words[0].rstrip(":")).name if words and words[0] else ""
    if kind == "agent":
        return name == "wattwire-agent" and "serve" in words
    if kind == "guard":
        return name == "wattwire-agent" and "guard" in words
    if kind in ("node", "bridge"):
        is_node = "--spec" in words and name != "wattwire-agent"
        spec = words[words.index("--spec") + 1] if is_node else ""
        return is_node and (kind == "node" or "/out/bridge-" in spec)
    if kind == "emulator":
        return name == "wattwire-link"
    return name.split("-")[0] == kind


def victims(kind: str, controller: int) -> list[int]:
    """Return all processes of a kind in a campaign."""
    if kind == "controller":
        return [controller]
    return [pid for pid in descendants(controller) if is_kind(kind, words_of(pid))]


def namespaces_of(pid: int) -> set[str]:
    """Return the namespaces of a process, such as `net:[4026531840]`."""
    found = set()
    for name in NAMESPACES:
        with contextlib.suppress(OSError):
            found.add(os.readlink(f"/proc/{pid}/ns/{name}"))
    return found


def boot_ticks() -> int:
    """Return the time since boot in the unit of `born`."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


def all_namespaces() -> dict[str, int]:
    """Return a process of each namespace that has one."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    return {namespace: pid for pid in pids for namespace in namespaces_of(pid)}


# -- one kill ------------------------------------------------------------------------------------


def kill_once(
    kind: str, setting: RigSetting, folder: Path, rng: random.Random, campaign_s: float
) -> Seen | None:
    """Run, kill and resume one campaign; return None if it ended before the kill."""
    setting.prepare(folder)
    study, campaign = folder / "study.toml", folder / "c"
    study.write_text(setting.study)
    before = set(all_namespaces())
    process = setting.start(folder, "run", str(study), "--campaign", str(campaign))
    wait_s = rng.uniform(0.0, campaign_s)
    began = time.monotonic()
    family = Family()
    used: set[str] = set()
    target = None
    while process.poll() is None and target is None:
        pids = list(descendants(process.pid))
        family.add(pids)
        used |= {namespace for pid in pids for namespace in namespaces_of(pid)}
        if time.monotonic() - began >= wait_s:
            found = victims(kind, process.pid)
            target = rng.choice(found) if found else None
        time.sleep(0.002)
    if target is None:
        return None
    phase, after_s = last_line(folder), time.monotonic() - began
    with contextlib.suppress(ProcessLookupError):
        os.kill(target, signal.SIGKILL)
    problems = [] if ended(process, family) else ["the controller hangs after the kill"]
    end_ticks = boot_ticks()
    problems += resume(setting, folder, campaign, family)
    problems += ledger(campaign)
    problems += _records(campaign)
    problems += left(folder, family, LEFT_S)
    problems += _left_on_hosts(setting, used - before, end_ticks, family)
    problems += keys_left(setting, folder)
    return Seen(kind, after_s, phase, problems, reasons_of(campaign))


def crash_once(crash: str, setting: RigSetting, folder: Path) -> list[str]:
    """Run a campaign with a crash point (wattwire.run.crash), resume it, and return the faults."""
    setting.prepare(folder)
    before, campaign = set(all_namespaces()), folder / "c"
    family = Family()
    used: set[str] = set()

    def observe(pids: list[int]) -> None:
        for pid in pids:
            used.update(namespaces_of(pid))

    problems = crashed(crash, setting, folder, family, observe)
    end_ticks = boot_ticks()
    problems += resume(setting, folder, campaign, family)
    problems += ledger(campaign) + _records(campaign) + left(folder, family, LEFT_S)
    problems += _left_on_hosts(setting, used - before, end_ticks, family)
    return problems + keys_left(setting, folder)


def files_with_keys(folders: Iterable[Path]) -> list[Path]:
    """Return the files below these folders that contain a private key."""
    files_left = []
    # os.walk ignores folders that have just been removed.
    walks = (walk for folder in folders for walk in os.walk(folder))
    for path in (Path(name, file) for name, _, files in walks for file in files):
        with contextlib.suppress(OSError):  # it has just been removed
            if path.is_file() and PRIVATE_KEY.search(path.read_bytes()):
                files_left.append(path)
    return files_left


def keys_left(setting: RigSetting, folder: Path) -> list[str]:
    """Return the private keys that secured campaigns in `folder` have left or would publish.

    The campaign, its temporary files, the shared memory of this machine and of hosts over ssh, and
    the folders of its attempts on the hosts are searched, and a bundle of the campaign. Hosts over
    ssh may still remove files, so this waits.
    """
    if setting.rig_study != SECURED_STUDY:
        return []
    tokens, deadline = tokens_below(folder), time.monotonic() + LEFT_S
    pids = setting.machines.pids.values() if setting.machines else ()
    memories = [Path("/dev/shm"), *(Path(f"/proc/{pid}/root/dev/shm") for pid in pids)]
    while True:
        attempts = [path for token in tokens for path in setting.attempts.glob(f"{token}*")]
        keys = files_with_keys([folder, *memories, *attempts])
        if not keys or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    archive = folder / "bundle.zip"
    subprocess.run(
        [sys.executable, "-m", "wattwire", "bundle", str(folder / "c"), "-o", str(archive)],
        check=True, capture_output=True,
    )  # fmt: skip
    with zipfile.ZipFile(archive) as bundle:
        published = [name for name in bundle.namelist() if PRIVATE_KEY.search(bundle.read(name))]
    return [f"left behind, private key: {path}" for path in keys] + [
        f"in a bundle, private key: {name}" for name in published
    ]


def _records(campaign: Path) -> list[str]:
    """Check that each completed run has each of its messages once."""
    stored, problems = Campaign(campaign), []
    try:
        for row in stored.rows():
            whole = row["outcome"] == Outcome.COMPLETED.value and row["verdict"] == "valid"
            # The middleware may lose messages, but no record of them.
            sent, *fates = (row.get(name) or 0 for name in COUNTS)
            if whole and not sent == sum(fates) == MESSAGES:
                problems.append(f"{row['run']}: {sent} messages sent, fates {fates}")
    finally:
        stored.close()
    return problems


def is_of_other_program(pid: int, family: Mapping[int, str | None]) -> bool:
    """Return whether neither this program nor its campaign started some ancestor of a process.

    What a campaign leaves has no such ancestor: its parent is one of the family, an ancestor of
    this process, or process 1.
    """
    own = {*ancestors(os.getpid()), *descendants(os.getpid()), os.getpid(), 1}
    return any(
        ancestor not in own and family.get(ancestor) != born(ancestor)
        for ancestor in ancestors(pid)
    )


def ancestors(pid: int) -> Iterator[int]:
    """Return the ancestors of a process, the parent first."""
    with contextlib.suppress(OSError, IndexError):
        while pid > 1:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
            yield pid


def _left_on_hosts(
    setting: RigSetting, used: set[str], end_ticks: int, family: Family
) -> list[str]:
    """Return what is left of the hosts: namespaces, devices, and files.

    The kernel gives a namespace the number of one that ended. Therefore a process is in another
    namespace with the same number if it started after the campaign's end (`end_ticks`), or if
    another program started it, such as another campaign on this machine.
    """
    deadline, own = time.monotonic() + LEFT_S, (setting.network,)
    checks: dict[str, Callable[[], list[str]]] = {
        "namespace": lambda: [
            f"{namespace} of {words_of(pid)}"
            for namespace, pid in all_namespaces().items()
            if namespace in used
            and int(born(pid) or end_ticks + 1) <= end_ticks
            and not is_of_other_program(pid, family)
        ],
        "device": lambda: [name for name in os.listdir("/sys/class/net") if name in own],
        "far": lambda: [] if setting.machines is None else setting.machines.left(),
    }
    while True:
        found = {name: check() for name, check in checks.items()}
        problems = [f"left behind, {name}: {what}" for name, what in found.items() if what]
        if not problems or time.monotonic() > deadline:
            return problems
        time.sleep(0.05)


def length_s(setting: RigSetting, folder: Path) -> float:
    """Return the duration of a campaign that nothing disturbs. It must leave nothing, too."""
    setting.prepare(folder)
    campaign_s = exposure_s("controller", setting, folder, LEFT_S)
    assert _records(folder / "c") == []
    return campaign_s


@contextlib.contextmanager
def setting_of(kind: str, folder: Path, study: str = RIG_STUDY) -> Iterator[RigSetting]:
    """Yield the setting in which processes of this kind are killed."""
    if kind not in SSH_KINDS and not kind.startswith(FAR):
        yield RigSetting(rig_study=BRIDGED_STUDY if kind in BRIDGE_KINDS else study)
        return
    with machines_over_ssh(folder / "machines", HOSTS) as machines:
        yield RigSetting(rig_study=study, machines=machines, network=machines.network)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=59)
    kinds = (*LINK_KINDS, *BRIDGE_KINDS, *SSH_KINDS)
    parser.add_argument("--secured", action="store_true", help="secured campaigns with a broker")
    parser.add_argument("--only", action="append", choices=sorted({*kinds, *SECURED_KINDS}))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    kinds, study = (SECURED_KINDS, SECURED_STUDY) if options.secured else (kinds, RIG_STUDY)
    if unknown := {*(options.only or ())} - {*kinds}:
        parser.error(f"--only: found {', '.join(sorted(unknown))}; allowed: {', '.join(kinds)}")
    folder = Path(tempfile.mkdtemp(prefix="wattwire-rig-kills-"))
    failed = 0
    for kind in options.only or kinds:
        bad, place = 0, folder / kind
        place.mkdir()
        with setting_of(kind, place, study) as setting:
            (place / "first").mkdir()
            campaign_s = length_s(setting, place / "first")
            kill = partial(kill_once, kind, setting, campaign_s=campaign_s)
            for seen in kill_many(kind, options.kills, kill, place, options.seed):
                bad += bool(seen.problems)
                words = seen.problems or f"no fault, incomplete: {seen.reasons}"
                print(f"{kind} after {seen.after_s:.2f} s, at “{seen.phase}”: {words}", flush=True)
        failed += bad
        print(f"{kind}: {options.kills} kills, {bad} failed", flush=True)
    if failed:
        print(f"kept: {folder}")
        return 1
    shutil.rmtree(folder)
    print("nothing lost, nothing twice, nothing left")
    return 0


if __name__ == "__main__":
    sys.exit(main())
