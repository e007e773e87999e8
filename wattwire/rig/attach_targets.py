"""Resolve running systems to measure: a process, a cgroup or a systemd unit."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from wattwire.model.deployment import Target
from wattwire.model.errors import MissingError, UsageError

CGROUPS = Path("/sys/fs/cgroup")
HIERARCHIES = ("", "unified", "cpuacct", "cpu,cpuacct", "systemd")
"""Possible mount points of a unit's cgroup: version 2 alone, then with version 1."""
SYSTEMCTL_S = 10.0


def parse_target(text: str) -> Target:
    """Return the Target of `pid:N`, `cgroup:PATH` or `unit:NAME`.

    Raise UsageError for another form or a target that does not exist, MissingError without systemd.
    """
    kind, _, value = text.partition(":")
    if kind == "pid" and value.isdecimal():
        if not Path(f"/proc/{value}").exists():
            raise UsageError(f"--attach {text}: process {value} is not running here; see `ps -e`")
        return Target(text, pid=int(value))
    if kind == "cgroup" and value:
        return Target(text, cgroup=str(_cgroup(text, Path(value))))
    if kind == "unit" and value:
        return Target(text, cgroup=str(unit_cgroup(value)))
    raise UsageError(f"--attach: found {text!r}; allowed: pid:NUMBER, cgroup:PATH, unit:NAME")


def _cgroup(text: str, path: Path) -> Path:
    candidates = (
        [path] if path.is_absolute() else [CGROUPS / hierarchy / path for hierarchy in HIERARCHIES]
    )
    cgroup = best_cgroup(candidates)
    if cgroup is None:
        searched = ", ".join(map(str, candidates))
        raise UsageError(
            f"--attach {text}: this cgroup does not exist (looked for cgroup.procs in "
            f"{searched}). `systemd-cgls` lists the cgroups."
        )
    return cgroup


def best_cgroup(candidates: Iterable[Path]) -> Path | None:
    """Return the first cgroup that counts CPU time, or else the first cgroup."""
    cgroups = [path for path in candidates if (path / "cgroup.procs").exists()]
    counting = [path for path in cgroups if _counts_cpu_time(path)]
    return next(iter([*counting, *cgroups]), None)


def _counts_cpu_time(folder: Path) -> bool:
    if (folder / "cpuacct.usage").exists():
        return True
    try:
        return "usage_usec" in (folder / "cpu.stat").read_text()
    except OSError:
        return False


def unit_cgroup(name: str) -> Path:
    """Return the cgroup of a running systemd unit.

    A system unit takes precedence over a user unit.
    """
    if shutil.which("systemctl") is None:
        raise MissingError(
            f"--attach unit:{name}: systemd is missing (no systemctl on PATH). "
            "Use pid:NUMBER or cgroup:PATH instead."
        )
    answers = [_control_group(name, scope) for scope in ([], ["--user"])]
    for path, _ in answers:
        if path:
            cgroup = best_cgroup(
                [CGROUPS / hierarchy / path.lstrip("/") for hierarchy in HIERARCHIES]
            )
            if cgroup is not None:
                return cgroup
            raise MissingError(f"--attach unit:{name}: its cgroup {path} is not visible here")
    complaint = next((text for _, text in answers if text), "")
    if complaint:
        raise MissingError(
            f"--attach unit:{name}: systemd does not respond ({complaint}). "
            "Use pid:NUMBER or cgroup:PATH instead."
        )
    raise UsageError(f"--attach unit:{name}: this unit is not running; see `systemctl list-units`")


def _control_group(name: str, scope: list[str]) -> tuple[str, str]:
    """Return the unit's cgroup (empty if it is not running) and systemctl's error message."""
    argv = ["systemctl", *scope, "show", "--property=ControlGroup", "--value", "--", name]
    try:
        result = subprocess.run(
            argv, capture_output=True, text=True, timeout=SYSTEMCTL_S, check=False
        )
    except subprocess.TimeoutExpired:
        return "", f"no answer in {SYSTEMCTL_S:g} s"
    complaint = result.stderr.strip().splitlines()
    return result.stdout.strip(), complaint[0] if result.returncode and complaint else ""
