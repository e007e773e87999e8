"""Build the test machine in a folder, boot it, and return what its suite left there.

The folder holds all that a machine writes on the host: the module's build, the initramfs, the
console and the results. qemu dies with this process, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.machine.initramfs import FOLDER, LINK, PROGRAM, archive
from tests.machine.parts import Parts, parts
from tools.sshd_rig import find_sshd, make_key
from wattwire.rig import cache

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MODULE = "invented_energy"
CONSOLE = "console.log"
PEER_AHEAD_S = 3600
"""By how much the wall clock of a second machine is ahead."""
CORES = 2
MEMORY_MIB = 4096
MEMBERS = ("udp", "loopback")
"""The middleware that the machine has. The others are hidden: `doctor` examines each cell."""
SHUTDOWN_S = 60
"""Time beyond the suite's limit in which the machine boots and powers off by itself."""
KERNEL_ARGUMENTS = (
    "console=ttyS0 quiet loglevel=4 panic=-1 "
    # qemu's TSC is the host's clock, the same for all cores. hpet would be emulated per reading.
    "tsc=reliable clocksource=tsc no_timer_check mitigations=off"
)
WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
"""The kernel kills qemu when this process ends, however it does."""


@dataclass(frozen=True)
class Ended:
    """The end of a machine: the suite's exit status, None if it wrote none; and its texts."""

    status: int | None
    out: Path
    console: str
    log: str


def boot(
    folder: Path,
    arguments: Sequence[str],
    limit_s: float,
    members: Sequence[str] = MEMBERS,
    peer: Sequence[str] = (),
) -> Ended:
    """Run the suite with `arguments` in a new machine, for at most `limit_s` seconds.

    The machine has the middleware `members` alone. With `peer`, a second machine runs the suite
    with these arguments in `folder/peer`; an Ethernet joins both, and they have a pair of ssh keys.
    Raise MissingPartsError if the host lacks a part, and TimeoutError if the machine did not power
    off.
    """
    machine_parts = parts()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    module = build_module(machine_parts, folder / "zones")
    battery = folder / "battery"
    _call([machine_parts.iasl, "-p", str(battery), str(HERE / "battery.asl")])
    image = folder / "initramfs.cpio"
    image.write_bytes(archive(_entries(machine_parts)))
    places = {folder: arguments} | ({folder / "peer": peer} if peer else {})
    keys = _keys(folder / "ssh") if peer else None
    with contextlib.ExitStack() as running:
        processes = []
        for number, (place, steps) in enumerate(places.items()):
            out = place / "out"
            out.mkdir(parents=True)
            shutil.copy2(module, out / module.name)
            environment = _environment(steps, members, limit_s)
            (out / "environment").write_text(environment, encoding="utf-8")
            command = qemu_command(
                machine_parts, image, battery.with_suffix(".aml"), out, place / CONSOLE
            )
            if keys is not None:
                shutil.copytree(keys, out / keys.name)
                command += _wire(folder, number)
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
            running.callback(process.wait)
            running.callback(process.kill)
            processes.append(process)
        try:
            processes[0].wait(timeout=limit_s + SHUTDOWN_S)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(
                f"the machine did not power off within {limit_s + SHUTDOWN_S:.0f} s; its "
                f"console: {folder / CONSOLE}; its suite: {folder / 'out' / 'suite.log'}"
            ) from error
        for process in processes[1:]:
            with contextlib.suppress(subprocess.TimeoutExpired):  # if the first machine failed
                process.wait(timeout=SHUTDOWN_S)
    return _ended(folder)


def _ended(place: Path) -> Ended:
    out = place / "out"
    status = out / "status"
    return Ended(
        int(status.read_text()) if status.exists() else None, out, _text(place / CONSOLE),
        _text(out / "suite.log"),
    )  # fmt: skip


def _keys(folder: Path) -> Path:
    """Create the keys of a user and of an ssh server in a folder, and return it."""
    _, keygen = find_sshd()
    folder.mkdir()
    for name in ("user_key", "host_key"):
        make_key(keygen, folder / name)
    return folder


def _wire(folder: Path, number: int) -> list[str]:
    """Return the options of one of two machines, the second of which has another wall clock."""
    local, remote = (folder / f"wire{end}" for end in (number, 1 - number))
    ends = f"local.type=unix,local.path={_escaped(local)}"
    ends += f",remote.type=unix,remote.path={_escaped(remote)}"
    wall = datetime.now(UTC) + timedelta(seconds=number * PEER_AHEAD_S)
    return [
        "-netdev", f"dgram,id=wire,{ends}",
        "-device", f"virtio-net-pci,netdev=wire,mac=52:54:00:00:00:0{number + 1}",
        "-rtc", f"base={wall:%Y-%m-%dT%H:%M:%S}",
    ]  # fmt: skip


def build_module(machine_parts: Parts, folder: Path) -> Path:
    """Build the kernel module from a copy of its sources, and return it."""
    shutil.copytree(HERE / "zones", folder)
    _call(["make", "-C", str(machine_parts.headers), f"M={folder}", "modules"])
    return folder / f"{MODULE}.ko"


def _call(command: list[str]) -> None:
    """Run a program that builds a part. Raise RuntimeError with its output if it fails."""
    # A make that runs the tests has variables for its own parts.
    environment = {name: text for name, text in os.environ.items() if not name.startswith("MAKE")}
    result = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        env=environment,
    )  # fmt: skip
    if result.returncode:
        raise RuntimeError(f"{shlex.join(command)}:\n{result.stdout}\n{result.stderr}")


def qemu_command(
    machine_parts: Parts, image: Path, battery: Path, out: Path, console: Path
) -> list[str]:
    """Return the command of a machine without acceleration, disk and screen."""
    host = "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap"
    results = f"local,path={_escaped(out)},mount_tag=out,security_model=none"
    return [
        *WITH_PARENT,
        machine_parts.qemu, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
        "-accel", "tcg,thread=multi", "-cpu", "max,la57=off", "-m", f"{MEMORY_MIB}",
        "-smp", f"{CORES},sockets={CORES},cores=1,threads=1",
        "-kernel", str(machine_parts.kernel), "-initrd", str(image), "-append", KERNEL_ARGUMENTS,
        "-virtfs", host, "-virtfs", results, "-device", "virtio-rng-pci",
        "-serial", f"file:{console}", "-acpitable", f"file={battery}",
    ]  # fmt: skip


def _escaped(path: Path) -> str:
    return str(path).replace(",", ",,")


def _entries(machine_parts: Parts) -> dict[str, tuple[int, bytes]]:
    folders = ("bin", "sbin", "modules", "proc", "sys", "dev", "layer", "host", "new")
    entries = {name: (FOLDER, b"") for name in folders}
    entries["bin/busybox"] = (PROGRAM, Path(machine_parts.busybox).read_bytes())
    for name in ("sh", "mount", "mkdir", "insmod", "cat", "switch_root"):
        entries[f"bin/{name}"] = (LINK, b"busybox")
    for path in machine_parts.modules:
        entries[f"modules/{path.name}"] = (PROGRAM, path.read_bytes())
    order = "".join(f"{path.name}\n" for path in machine_parts.modules)
    entries["modules/order"] = (PROGRAM, order.encode())
    entries["init"] = (PROGRAM, (HERE / "initramfs.sh").read_bytes())
    entries["script"] = (PROGRAM, (HERE / "inside.sh").read_bytes())
    return entries


def _environment(arguments: Sequence[str], members: Sequence[str], limit_s: float) -> str:
    values = {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(Path.home()),
        "LANG": "C.UTF-8",
        "WATTWIRE_CACHE": str(cache.folder()),
        "PYTHONPATH": str(ROOT),
        "CLONE": str(ROOT),
        "PYTHON": sys.executable,
        "MEMBERS": " ".join(members),
        "ARGUMENTS": shlex.join(arguments),
        "LIMIT_S": f"{limit_s:.0f}",
    }
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
