"""Finds or installs the Fast DDS library that the cells use.

Usage: build.py BUILD_DIR. Writes BUILD_DIR/exports.json. A sourced ROS installation with Fast DDS 3
takes precedence, so that the cells use the same library as its RMW. Otherwise this program unpacks
pinned wheels, which contain the headers and the library. If neither is possible, exports.json
contains {"absent": reason} and the exit code is 0.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"
MAJOR = "3"
"""The major version of the API that the cells use."""
WHEELS_PYTHON = "3.11"
"""The tag of the wheels. Fast DDS does not use Python, so any Python can unpack them."""
GLIBC_MINIMUM = (2, 28)


class Absent(Exception):
    """This machine does not support the environment; the text gives the reason and the remedy."""


def main() -> int:
    build = Path(sys.argv[1]).resolve()
    prefix = installed_prefix(os.environ.get("AMENT_PREFIX_PATH", ""))
    try:
        exports = exports_of(prefix, "installation") if prefix else use_wheels(build)
    except Absent as reason:
        exports = {"absent": str(reason)}
    (build / "exports.json").write_text(json.dumps(exports, indent=2) + "\n")
    return 0


def version_of(prefix: Path) -> str:
    """Return the version of the headers below a prefix, or "" if there are none."""
    config = prefix / "include" / "fastdds" / "config.hpp"
    text = config.read_text() if config.exists() else ""
    found = re.search(r'define FASTDDS_VERSION_STR "([^"]+)"', text)
    return found.group(1) if found else ""


def installed_prefix(search_path: str) -> Path | None:
    """Return the first prefix with Fast DDS 3, or None."""
    prefixes = [Path(p) for p in search_path.split(":") if p]
    with_library = (p for p in prefixes if (p / "lib" / "libfastdds.so").exists())
    return next((p for p in with_library if version_of(p).split(".")[0] == MAJOR), None)


def use_wheels(build: Path) -> dict:
    libc, version = platform.libc_ver()
    if libc != "glibc" or tuple(map(int, version.split("."))) < GLIBC_MINIMUM:
        raise Absent(
            f"the wheels of Fast DDS need glibc 2.28 or newer; this is {libc or 'no glibc'} "
            f"{version}; source a ROS installation with Fast DDS {MAJOR}"
        )
    wheels = build / "wheels"
    download(build, wheels)
    prefix = build / "fastdds"
    for wheel in sorted(wheels.glob("*.whl")):
        unpack(wheel, prefix)
    shutil.rmtree(wheels)
    return exports_of(prefix, "wheels")


def download(build: Path, folder: Path) -> None:
    venv = build / "venv"
    run([sys.executable, "-m", "venv", "--clear", str(venv)])
    machine = platform.machine()
    try:
        run(
            [str(venv / "bin" / "python"), "-m", "pip", "download", "--no-deps", "--no-input",
             "--disable-pip-version-check", "--require-hashes", "--only-binary=:all:",
             "--implementation=cp", f"--python-version={WHEELS_PYTHON}",
             f"--platform=manylinux_2_28_{machine}", "-d", str(folder), "-r", str(REQUIREMENTS)]
        )  # fmt: skip
    except subprocess.CalledProcessError as failure:
        # Only "no such file for this platform" means absence; an unreachable registry is a failure.
        unreachable = re.search(r"Retrying|ConnectionError|timed out", failure.output)
        if not unreachable and "No matching distribution" in failure.output:
            raise Absent(
                f"no wheels of Fast DDS for this platform ({machine}); source a ROS installation "
                f"with Fast DDS {MAJOR}"
            ) from failure
        raise
    shutil.rmtree(venv)


def run(argv: list[str]) -> None:
    """Run a command without output; if it fails, print its output and raise CalledProcessError."""
    foreign = ("LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV")
    env = {name: value for name, value in os.environ.items() if name not in foreign}
    done = subprocess.run(
        argv, check=False, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode != 0:
        print(done.stdout, flush=True)
        raise subprocess.CalledProcessError(done.returncode, argv, done.stdout)


def unpack(wheel: Path, prefix: Path) -> None:
    """Write the headers and the libraries of a wheel, with its bundled libraries, to a prefix."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            path = re.sub(r"^[^/]+\.libs/", "lib/", name)
            path = re.sub(r"^[^/]+\.data/data/", "", path)
            if path.endswith("/") or not path.startswith(("include/", "lib/")):
                continue
            target = prefix / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(name) as source, target.open("wb") as file:
                shutil.copyfileobj(source, file)


def exports_of(prefix: Path, how: str) -> dict:
    """Return the environment of the nodes, the compiler flags and the facts of a run."""
    libraries = prefix / "lib"
    inherited = os.environ.get("LD_LIBRARY_PATH", "") if how == "installation" else ""
    search_path = ":".join(p for p in (str(libraries), inherited) if p)
    includes = [prefix / "include", *sorted((prefix / "include").glob("fast*"))]
    return {
        "env": {"LD_LIBRARY_PATH": search_path},
        "lists": {
            "cxxflags": [f"-isystem{p}" for p in includes if p.is_dir()],
            "ldflags": [
                f"-L{libraries}", f"-Wl,-rpath-link,{search_path}", "-lfastdds", "-lfastcdr"
            ],
        },
        "facts": {"how": how, "prefix": str(prefix), "fastdds": version_of(prefix)},
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
