"""Install the Debian packages that a make verb requires, if possible.

Only what is missing is installed, and only as root on a machine with apt-get. Anywhere else the
missing packages are listed and the verb goes on: what needs them is skipped with its reason.
Plain standard library, because it runs before there is a virtual environment.
"""

from __future__ import annotations

import argparse
import glob
import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = "packages-debian.txt"
PLACES = (NAME, f"languages/*/{NAME}", f"middleware/*/{NAME}", f"middleware/*/*/{NAME}")
EXTRA_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"  # for servers; they may not be on a user's PATH


@dataclass(frozen=True)
class Package:
    """One line of a package list."""

    name: str
    shown_by: str
    verbs: tuple[str, ...]
    purpose: str

    def present(self) -> bool:
        """Return whether the program, file or module of the package exists.

        The way in which it was installed is not relevant. A file may be a pattern, as in a shell.
        """
        if self.shown_by.startswith("/"):
            return bool(glob.glob(self.shown_by))
        if self.shown_by.startswith("python:"):
            return importlib.util.find_spec(self.shown_by.removeprefix("python:")) is not None
        folders = f"{os.environ.get('PATH', '')}:{EXTRA_FOLDERS}"
        return shutil.which(self.shown_by, path=folders) is not None


def listed() -> list[Package]:
    """Return the packages of all lists in the repository, beginning with the root's list."""
    paths = [path for place in PLACES for path in sorted(ROOT.glob(place))]
    return [p for path in paths for p in read_packages(path.read_text("utf-8"), str(path))]


def read_packages(text: str, where: str = NAME) -> list[Package]:
    """Return the packages of a list.

    Raise ValueError for a line with fewer than four columns.
    """
    packages = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        columns = line.split(maxsplit=3)
        if len(columns) < 4:
            raise ValueError(
                f"{where}:{number}: found {len(columns)} columns; allowed: package, "
                "program, /path or python:MODULE, verbs, purpose"
            )
        packages.append(Package(columns[0], columns[1], tuple(columns[2].split(",")), columns[3]))
    return packages


def install(names: list[str]) -> bool:
    """Install packages with apt-get, and return whether this succeeded."""
    # Nodes start their servers themselves, so RUNLEVEL prevents packages from starting them.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    commands = (
        ["apt-get", "-qq", "update"],
        ["apt-get", "-qq", "install", "-y", "--no-install-recommends", *names],
    )
    for command in commands:
        print("+", " ".join(command), flush=True)
        result = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=False)
        if result.returncode != 0:
            return False
    return True


def main(arguments: list[str]) -> int:
    """Return 0 if the verb may continue, or 3 if an installation failed with CI=true."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", help="a verb of the Makefile, such as demo or test")
    verb = parser.parse_args(arguments).verb
    needed = [p for p in listed() if verb in p.verbs]
    missing = [p for p in needed if not p.present()]
    if not missing:
        return 0
    names = list(dict.fromkeys(p.name for p in missing))
    if os.geteuid() == 0 and shutil.which("apt-get"):
        if install(names):
            return 0
        print(f"could not install: {' '.join(names)}; what needs them is skipped", file=sys.stderr)
        return 3 if os.environ.get("CI") == "true" else 0
    for package in missing:
        print(f"missing: {package.name} ({package.purpose})", file=sys.stderr)
    print(
        f"what needs them is skipped; to have it: sudo apt-get install {' '.join(names)}",
        file=sys.stderr,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
