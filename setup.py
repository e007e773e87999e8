"""Build a wheel that carries the agent and the open folders, which pyproject.toml cannot state.

The wheel's `wattwire/_data/` holds `bin/` with the agent and the link emulator, the open folders
and the contract. `WATTWIRE_WHEEL_TARGET` names a Rust target to build the programs for (a musl one
gives static programs that run on any Linux); `WATTWIRE_WHEEL_AGENT` and `WATTWIRE_WHEEL_LINK` name
programs that were built already.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
DATA = Path("wattwire") / "_data"
AGENT = "wattwire-agent"
PROGRAMS = {
    AGENT: ("agent", "WATTWIRE_WHEEL_AGENT"),
    "wattwire-link": ("emulator", "WATTWIRE_WHEEL_LINK"),
}
"""Program → the folder of its crate, and the variable that names a built one."""
FOLDERS = (
    "languages", "middleware", "meters", "links", "bridges", "studies", "contract", "layerprof",
)  # fmt: skip
FILES = ("packages-debian.txt",)
LEFT_OUT = ("tests", "fixtures", "target", "node_modules", "__pycache__", "*.pyc", ".*")

MACHINES = {62: "x86_64", 183: "aarch64"}
PT_INTERP = 3


class BuildWithData(build_py):
    """Copies the open folders and builds the programs into the package, for wheels only."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:  # a checkout's folders are found beside the package
            return
        data = Path(self.build_lib) / DATA
        shutil.rmtree(data, ignore_errors=True)
        for name in FOLDERS:
            shutil.copytree(ROOT / name, data / name, ignore=shutil.ignore_patterns(*LEFT_OUT))
        for name in FILES:
            shutil.copy2(ROOT / name, data / name)
        (data / "bin").mkdir()
        for name, (folder, variable) in PROGRAMS.items():
            shutil.copy2(built_program(name, folder, variable), data / "bin" / name)


class OfOneMachine(Distribution):
    """Carries a program, so that it is installed where a machine's own files go."""

    def has_ext_modules(self) -> bool:
        return True


class WheelWithAgent(bdist_wheel):
    """The code is any Python 3's, the agent one machine's: the tag says both."""

    def get_tag(self) -> tuple[str, str, str]:
        built = Path(self.get_finalized_command("build_py").build_lib)
        for folder in (Path(self.bdist_dir), built):
            agent = folder / DATA / "bin" / AGENT
            if agent.exists():
                return "py3", "none", platform_tag(agent.read_bytes())
        return super().get_tag()  # an editable install carries nothing: it uses the checkout's


def built_program(name: str, folder: str, variable: str) -> Path:
    """The program to be carried, built now unless one is named."""
    named = os.environ.get(variable)
    if named:
        return Path(named)
    target = os.environ.get("WATTWIRE_WHEEL_TARGET", "")
    if shutil.which("cargo") is None:
        sys.exit(
            f"wattwire: building a wheel needs cargo (Rust 1.82 or newer), or a {name} that was "
            f"built already in {variable}"
        )
    output = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    command = ["cargo", "build", "--release", "--locked", "--quiet"]
    command += ["--manifest-path", str(ROOT / folder / "Cargo.toml"), "--target-dir", str(output)]
    command += ["--target", target] if target else []
    subprocess.run(command, check=True)
    return output / target / "release" / name


def platform_tag(program: bytes) -> str:
    """The wheel's platform, read from the agent's ELF header.

    A static program needs no C library, so it runs on every Linux of its machine (manylinux and
    musllinux); a dynamic one needs at least the C library of the machine that built it, which the
    plain `linux` tag claims nothing about.
    """
    if program[:6] != b"\x7fELF\x02\x01":
        sys.exit("wattwire: the agent is no 64-bit little-endian ELF program")
    (machine,) = struct.unpack_from("<H", program, 18)
    (offset,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    kinds = [struct.unpack_from("<I", program, offset + i * size)[0] for i in range(count)]
    if machine not in MACHINES:
        sys.exit(f"wattwire: the agent is for machine {machine}; known: {MACHINES}")
    name = MACHINES[machine]
    if PT_INTERP in kinds:
        return f"linux_{name}"
    return f"manylinux_2_17_{name}.manylinux2014_{name}.musllinux_1_1_{name}"


commands: dict[str, Any] = {"build_py": BuildWithData, "bdist_wheel": WheelWithAgent}
setup(cmdclass=commands, distclass=OfOneMachine)
