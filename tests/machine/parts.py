"""Find what the test machine is made of on this host, or name what is missing."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tools.packages import EXTRA_FOLDERS, listed
from wattwire.rig import cache

ROOT = Path(__file__).resolve().parents[2]

VERB = "test-machine"
"""The make target whose packages the machine needs (packages-debian.txt)."""
MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
"""What the kernel needs before it has the host's root."""
RELEASE = re.compile(r"(\d+)\.(\d+)\.(\d+)-(\d+)-amd64")
"""A kernel of Debian; the one for clouds (`…-cloud-amd64`) has neither 9p nor power supplies."""


OWN_FOLDERS = (Path("/tmp"), Path("/run"), Path("/dev"))
"""Folders of the machine that are not the host's."""


class MissingPartsError(Exception):
    """The machine cannot be built here; the message names what is missing and how to get it."""


@dataclass(frozen=True)
class Parts:
    """The programs and files of a machine."""

    qemu: str
    busybox: str
    iasl: str
    kernel: Path
    headers: Path
    modules: tuple[Path, ...]
    """Kernel modules in the order of loading."""


def parts() -> Parts:
    """Return the parts of the newest kernel that is complete. Raise MissingPartsError."""
    if platform.machine() != "x86_64":
        raise MissingPartsError(
            f"the test machine is an x86-64 one with the host's programs, and this host is "
            f"{platform.machine()}"
        )
    missing = [p for p in listed() if VERB in p.verbs and not p.present()]
    if missing:
        lines = "; ".join(f"{p.name} ({p.purpose})" for p in missing)
        names = " ".join(p.name for p in missing)
        raise MissingPartsError(f"missing: {lines}; to have it: sudo apt-get install {names}")
    hidden = [path for path in (ROOT, sys.prefix, cache.folder()) if is_hidden(Path(path))]
    if hidden:
        raise MissingPartsError(
            f"the test machine has its own {', '.join(map(str, OWN_FOLDERS))}, which hide "
            f"{hidden[0]}; move it elsewhere"
        )
    release = newest_release()
    return Parts(
        _program("qemu-system-x86_64"),
        _program("busybox"),
        _program("iasl"),
        Path(f"/boot/vmlinuz-{release}"),
        Path(f"/lib/modules/{release}/build"),
        _modules(release),
    )


def is_hidden(path: Path) -> bool:
    """Whether the machine does not see this path of the host."""
    return any(path.resolve().is_relative_to(folder) for folder in OWN_FOLDERS)


def newest_release() -> str:
    """Return the newest kernel with image, modules and headers. Raise MissingPartsError."""
    releases = [path.name for path in Path("/lib/modules").glob("*-amd64")]
    complete = [
        (tuple(map(int, match.groups())), name)
        for name in releases
        if (match := RELEASE.fullmatch(name))
        and os.access(f"/boot/vmlinuz-{name}", os.R_OK)
        and Path(f"/lib/modules/{name}/build").exists()
    ]
    if not complete:
        raise MissingPartsError(
            f"no kernel of Debian with a readable image in /boot and with headers; found in "
            f"/lib/modules: {', '.join(sorted(releases)) or 'none'}; allowed: N.N.N-N-amd64 (the "
            "one for clouds lacks 9p); to have it: sudo apt-get install linux-image-amd64 "
            "linux-headers-amd64"
        )
    return max(complete)[1]


def _modules(release: str) -> tuple[Path, ...]:
    command = [_program("modprobe"), "--set-version", release, "--show-depends", "--all", *MODULES]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise MissingPartsError(f"modules of the kernel {release}: {result.stderr.strip()}")
    paths = [line.split()[1] for line in result.stdout.splitlines() if line.startswith("insmod ")]
    return tuple(Path(path) for path in dict.fromkeys(paths))


def _program(name: str) -> str:
    path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{EXTRA_FOLDERS}")
    if path is None:
        raise MissingPartsError(f"{name} is not on PATH")
    return path
