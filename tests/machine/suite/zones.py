"""Load and unload the kernel module with the zones."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

OUT = Path("/mnt/out")
"""The host's folder of results; nothing but results, because SQLite cannot work there."""
MODULE = OUT / "invented_energy.ko"
TRUTH = Path("/proc/invented_energy")


@contextlib.contextmanager
def zones(folder: Path | None = None, **parameters: int) -> Iterator[None]:
    """Have the zones of the module, and write its log to `folder` in the end."""
    words = [f"{name}={value}" for name, value in parameters.items()]
    subprocess.run(["/sbin/insmod", str(MODULE), *words], check=True)
    try:
        yield
        if folder is not None:
            shutil.copyfile(TRUTH, folder / "truth.txt")
    finally:
        subprocess.run(["/sbin/rmmod", MODULE.stem], check=True)
