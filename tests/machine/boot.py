"""Build the test machine in a folder, boot it, and return what its suite left there.

The folder holds all that a machine writes on the host: the module's build, the initramfs, the
console and the results. qemu dies with this process, however that ends.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.machine.initramfs import FOLDER, LINK, PROGRAM, archive
from tests.machine.parts import Parts, parts
from wattwire.rig import cache

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MODULE = "invented_energy"
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
    folder: Path, arguments: Sequence[str], limit_s: float, members: Sequence[str] = MEMBERS
) -> Ended:
    """Run the suite with `arguments` in a new machine, for at most `limit_s` seconds.

    The machine has the middleware `members` alone.
    Raise MissingPartsError if the host lacks a part, and TimeoutError if the machine did not power
    off.
    """
    machine_parts = parts()
    shutil.rmtree(folder, ignore_errors=True)
    out = folder / "out"
    out.mkdir(parents=True)
    module = build_module(machine_parts, folder / "zones")
    battery = folder / "battery"
    _call([machine_parts.iasl, "-p", str(battery), str(HERE / "battery.asl")])
    image = folder / "initramfs.cpio"
    image.write_bytes(archive(_entries(machine_parts)))
    shutil.copy2(module, out / module.name)
    (out / "environment").write_text(_environment(arguments, members, limit_s), encoding="utf-8")
    console = folder / "console.log"
    command = qemu_command(machine_parts, image, battery.with_suffix(".aml"), out, console)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        process.wait(timeout=limit_s + SHUTDOWN_S)
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(
            f"the machine did not power off within {limit_s + SHUTDOWN_S:.0f} s; its console: "
            f"{console}; its suite: {out / 'suite.log'}"
        ) from error
    finally:
        process.kill()
        process.wait()
    status = out / "status"
    return Ended(
        int(status.read_text()) if status.exists() else None, out, _text(console),
        _text(out / "suite.log"),
    )  # fmt: skip


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
    """Return the command of a machine without acceleration, network, disk and screen."""
    host = "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap"
    results = f"local,path={_escaped(out)},mount_tag=out,security_model=none"
    return [
        *WITH_PARENT,
        machine_parts.qemu, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
        "-accel", "tcg,thread=multi", "-cpu", "max,la57=off", "-m", f"{MEMORY_MIB}",
        "-smp", f"{CORES},sockets={CORES},cores=1,threads=1",
        "-kernel", str(machine_parts.kernel), "-initrd", str(image), "-append", KERNEL_ARGUMENTS,
        "-virtfs", host, "-virtfs", results, "-device", "virtio-rng-pci", "-nic", "none",
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
