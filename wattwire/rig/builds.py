"""Build the environment of a cell's middleware, and the cell.

The key of an artifact is the hash of all its inputs: file contents, commands, the key of the
environment, and the interpreter. A host builds each key once.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wattwire.catalog import Bridge, Cell, Middleware
from wattwire.model.errors import MissingError, UsageError, unknown
from wattwire.model.words import listed
from wattwire.rig import cache
from wattwire.rig.agent import AgentClient, AgentError
from wattwire.rig.downloads import unanswered_download
from wattwire.rig.observed import note_build, observed
from wattwire.rig.versions import require_versions

BUILD_GUESS_S = 8.0
"""Expected seconds of an unknown build: a small virtual environment takes 6 to 9 s."""
STEP = re.compile(r"\[(?P<step>\d+)/\d+\] ")
"""Prefix of the agent's line when a command begins."""
MINUTES = re.compile(r"(?P<minutes>\d+) minutes?")
SKIPPED_NAMES = frozenset({"__pycache__", "tests", "target", ".pytest_cache", ".mypy_cache"})


def host_python() -> str:
    """Return the base interpreter, which runs cells without wattwire's packages."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


@dataclass(frozen=True)
class Artifact:
    """A finished build: its folder, and its exports for the builds that use it."""

    key: str
    directory: Path | None
    cached: bool = True
    exports: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class CellBuild:
    """A cell that is ready to run. `argv` does not include --spec and --out."""

    cell: Cell
    key: str
    argv: tuple[str, ...]
    env: dict[str, str]
    facts: dict[str, Any]
    cached: bool
    words: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Placeholders of the services of the cell's middleware: `python` and `environment`."""


@dataclass(frozen=True)
class BuildStep:
    """Progress of a build: build `number` of `builds`, command `step` of `steps`.

    `step` is 0 before the first command. `done` is set after the last command.
    """

    name: str
    number: int
    builds: int
    step: int
    steps: int
    elapsed_s: float
    done: bool = False
    expected: str = ""
    """Duration stated in the manifest, as text; "" if none."""


class NotBuiltError(MissingError):
    """Error for a missing build, raised by a builder with `look` set.

    `heavy` is the duration of the build as text. `expected_s` is a forecast in seconds.
    """

    def __init__(self, name: str, heavy: str, expected_s: float = 0.0) -> None:
        super().__init__(f"{name} is not built yet; `wattwire build {name}` builds it")
        self.built_name, self.heavy, self.expected_s = name, heavy, expected_s


class LackingError(MissingError):
    """Error for programs of a cell that are not on PATH, and for files that do not exist."""

    def __init__(self, wanted_by: str, programs: list[str]) -> None:
        paths = [name for name in programs if name.startswith("/")]
        names = [name for name in programs if name not in paths]
        reasons = []
        if names:
            reasons.append(f"{listed(names)} {'is' if len(names) == 1 else 'are'} not on PATH")
        if paths:
            reasons.append(f"{listed(paths)} {'does' if len(paths) == 1 else 'do'} not exist")
        super().__init__(
            f"{wanted_by}: {' and '.join(reasons)}; "
            f"install {'it' if len(programs) == 1 else 'them'} and try again"
        )
        self.programs = programs


class Builder:
    """Builder of cells on one host through its agent. It caches its results.

    With `look`, a missing build raises NotBuiltError.
    """

    def __init__(
        self,
        agent: AgentClient,
        progress: Callable[[BuildStep], None] | None = None,
        look: bool = False,
    ) -> None:
        self._look = look
        self._agent = agent
        self._progress = progress or (lambda _step: None)
        self._begun = self._due = 0
        self._environments: dict[tuple[str, Path], Artifact] = {}
        self._cells: dict[str, CellBuild] = {}

    def cell(self, cell: Cell) -> CellBuild:
        """Build a cell. Raise MissingError if this host lacks a requirement."""
        if cell.known_as not in self._cells:
            check_requirements(cell)
            environment = self._environment(cell.middleware)
            self._cells[cell.known_as] = self._build_cell(cell, environment)
        return self._cells[cell.known_as]

    def absent_levels(self, cell: Cell) -> dict[str, dict[str, str]]:
        """Return the levels that this host does not support (setting → level → reason).

        The environment of the cell's middleware lists them. The result is empty if this
        environment is not built yet. Raise UsageError if it lists an unknown setting.
        """
        middleware = cell.middleware
        environment = self._environments.get((middleware.name, middleware.folder))
        exports = environment.exports if environment is not None else {}
        own_exports = exports.get("cells", {}).get(cell.folder.name, {})
        absent: dict[str, dict[str, str]] = {}
        for tables in (exports.get("settings", {}), own_exports.get("settings", {})):
            for setting, table in tables.items():
                if setting not in middleware.settings:
                    where = f"the environment of {middleware.name}"
                    raise unknown(where, "setting", setting, middleware.settings)
                absent[setting] = {**absent.get(setting, {}), **table.get("absent", {})}
        return absent

    def absent_capabilities(self, cell: Cell) -> dict[str, str]:
        """Return the cell's capabilities that this host does not support, each with the reason.

        The environment of the cell's middleware lists them. The result is empty if this
        environment is not built yet. Raise UsageError if the cell declares no such capability.
        """
        middleware = cell.middleware
        environment = self._environments.get((middleware.name, middleware.folder))
        exports = environment.exports if environment is not None else {}
        own_exports = exports.get("cells", {}).get(cell.folder.name, {})
        absent = dict(own_exports.get("capabilities", {}).get("absent", {}))
        for name in absent:
            if name not in cell.document["capabilities"]:
                where = f"the environment of {middleware.name}: cells.{cell.folder.name}"
                raise unknown(where, "capability", name, cell.document["capabilities"])
        for name, reason in exports.get("capabilities", {}).get("absent", {}).items():
            if name in cell.document["capabilities"]:
                absent[name] = reason
        return absent

    def cpu_latency_gap(self) -> str | None:
        """Return the reason that the agent cannot limit the CPUs' wake-up latency, or None."""
        state = self._agent.hello["cpu_latency"]
        if state["absent"] is None:
            return None
        return (
            f"cpu_latency_us requires write access to the kernel's device: {state['absent']}. "
            "If the device exists, run wattwire as root or grant the access; otherwise, leave out "
            "cpu_latency_us"
        )

    def unbuilt(self, cells: Iterable[Cell]) -> dict[str, float]:
        """Return the missing builds of these cells.

        The result maps names of cells or environments to expected seconds. Cells that cannot be
        built here are omitted. Nothing is built. Later progress reports count these builds.
        """
        look_before, self._look = self._look, True
        expected_s: dict[str, float] = {}
        try:
            for cell in cells:
                try:
                    self.cell(cell)
                except NotBuiltError as error:
                    expected_s[error.built_name] = error.expected_s
                    if error.built_name != cell.name:  # the key of the cell depends on that build
                        expected_s[cell.name] = expected_build_s(cell.name, cell.document["build"])
                except MissingError:
                    continue
        finally:
            self._look = look_before
        self._due = self._begun + len(expected_s)
        return expected_s

    def _environment(self, middleware: Middleware) -> Artifact:
        identity = (middleware.name, middleware.folder)
        if identity in self._environments:
            return self._environments[identity]
        table = middleware.environment
        if table is None:
            return Artifact("", None)
        files = list(laid_out(middleware.folder, table.get("inputs", [])))
        # The key includes only the variables that the manifest names, so it does not depend on
        # PATH. Without the variable that all of them belong to, none has a meaning.
        names = table.get("host_env", [])
        is_used = all(os.environ.get(name) for name in table.get("host_env_with", []))
        inherited = {name: os.environ.get(name, "") if is_used else "" for name in names}
        words = {"python": host_python()}
        commands = [substitute(c, words, {}) for c in table.get("commands", [])]
        key = digest_of(
            "environment",
            middleware.name,
            files,
            commands,
            inherited,
            host_digests(table.get("host_files", []), os.environ),
            platform.python_version(),
            platform.machine(),
        )
        reply = self._run_build(middleware.name, key, files, commands, table, inherited)
        directory = Path(reply["directory"])
        exports: dict[str, Any] = {}
        if "exports" in table:
            path = Path(table["exports"].replace("{build}", str(directory)))
            exports = json.loads(path.read_text(encoding="utf-8"))
        if "absent" in exports:
            raise MissingError(f"{middleware.name}: {exports['absent']}")
        artifact = Artifact(key, directory, bool(reply.get("cached")), exports)
        self._environments[identity] = artifact
        return artifact

    def _build_cell(self, cell: Cell, environment: Artifact) -> CellBuild:
        document = cell.document
        files = list(laid_out(cell.folder, document["inputs"]))
        if cell.language_folder is not None and "kit" in document:
            kit = laid_out(cell.language_folder / document["kit"], ["*"])
            files += [(f"_kit/{relative}", path, digest) for relative, path, digest in kit]
        if cell.wrapped_kit is not None:
            wrapped = laid_out(cell.wrapped_kit, ["*"])
            files += [(f"_wrapped/{relative}", path, digest) for relative, path, digest in wrapped]
        if isinstance(cell, Bridge) and cell.inner_folder is not None:
            inner = laid_out(cell.inner_folder, ["*"])
            files += [(f"_inner/{relative}", path, digest) for relative, path, digest in inner]
        if cell.imported_folder is not None:
            imported = laid_out(cell.imported_folder, ["*"])
            files += [
                (f"_imported/{relative}", path, digest) for relative, path, digest in imported
            ]
        exports = environment.exports
        cell_exports = exports.get("cells", {}).get(cell.folder.name, {})
        if "absent" in cell_exports:
            raise MissingError(f"{cell.name}: {cell_exports['absent']}")
        words = {
            "python": exports.get("python", host_python()),
            "environment": str(environment.directory or ""),
            "kit": "{source}/_kit",
            "wrapped": "{source}/_wrapped",
            "inner": "{source}/_inner",
            "imported": "{source}/_imported",
        }
        lists = {**document["build"]["lists"], **exports.get("lists", {})}
        commands = [substitute(c, words, lists) for c in document["build"]["commands"]]
        key = digest_of(
            "cell", cell.name, files, commands, environment.key, document["run"], platform.machine()
        )
        reply = self._run_build(
            cell.name, key, files, commands, document["build"], exports.get("env", {})
        )
        directory = str(reply["directory"])
        build_words = {
            **words,
            "source": f"{directory}/source",
            "build": directory,
            "kit": f"{directory}/source/_kit",
            "wrapped": f"{directory}/source/_wrapped",
            "inner": f"{directory}/source/_inner",
            "imported": f"{directory}/source/_imported",
        }
        argv = tuple(substitute(document["run"]["argv"], build_words, lists))
        own_env = {
            name: substitute([value], build_words, lists)[0]
            for name, value in document["run"]["env"].items()
        }
        env = merge_env(exports.get("env", {}), own_env)
        facts, cached = exports.get("facts", {}), bool(reply.get("cached"))
        service_words = {name: words[name] for name in ("python", "environment")}
        if isinstance(cell, Bridge):  # its services are those of the outer middleware
            outer = self._environment(cell.outer)
            service_words = {
                "python": outer.exports.get("python", host_python()),
                "environment": str(outer.directory or ""),
            }
        return CellBuild(cell, key, argv, env, facts, cached, service_words)

    def _run_build(
        self,
        name: str,
        key: str,
        files: list[tuple[str, Path, str]],
        commands: list[list[str]],
        table: Mapping[str, Any],
        env: dict[str, str],
    ) -> dict[str, Any]:
        try:
            finished = self._agent.built(key)
            if finished is not None:
                return finished
            heavy = table.get("heavy")
            if self._look:
                raise NotBuiltError(name, str(heavy or ""), expected_build_s(name, table))
            if heavy and os.environ.get("WATTWIRE_HEAVY") == "skip":
                raise MissingError(
                    f"{name} is not built yet, and WATTWIRE_HEAVY=skip skips its build, "
                    f"which takes {heavy}. `wattwire build {name}` builds it."
                )
            return self._build_now(name, key, files, commands, table, env)
        except AgentError as error:
            folder = cache.folder()
            if error.kind in {"permission", "io"} and not cache.writable(folder):
                raise MissingError(
                    f"{name} is not built yet, and the cache folder {folder} cannot be written. "
                    "Make it writable, or choose another with WATTWIRE_CACHE=FOLDER."
                ) from error
            if download := unanswered_download(error.reason):
                or_else = f", or {table['offline']}," if "offline" in table else ""
                raise MissingError(
                    f"{name} could not be built: `{download.command}` failed, because the network "
                    f"or the registry of packages did not answer ({download.reason}). Connect this "
                    f"machine to it{or_else} and try again with `wattwire build {name}`. Log: "
                    f"{download.log}"
                ) from error
            raise MissingError(
                f"{name} could not be built: {error}. Fix the cause that the log shows, and try "
                f"again with `wattwire build {name}`."
            ) from error

    def _build_now(
        self,
        name: str,
        key: str,
        files: list[tuple[str, Path, str]],
        commands: list[list[str]],
        table: Mapping[str, Any],
        env: dict[str, str],
    ) -> dict[str, Any]:
        """Build, report each step, and store the duration of the build."""
        self._begun += 1
        self._due = max(self._due, self._begun)
        began_s, last_step = time.monotonic(), 0

        def report(text: str = "", done: bool = False) -> None:
            nonlocal last_step
            match = STEP.match(text)
            last_step = int(match["step"]) if match else last_step
            step = BuildStep(
                name, self._begun, self._due, last_step, len(commands),
                time.monotonic() - began_s, done, str(table.get("heavy", "")),
            )  # fmt: skip
            self._progress(step)

        report()
        reply = self._agent.build(
            key, files, commands, env, int(table.get("timeout_s", 1800)), report
        )
        report(done=True)
        if not reply.get("cached"):  # otherwise, another process made the build
            note_build(name, float(reply.get("seconds", 0.0)))
        return reply


def expected_build_s(name: str, table: Mapping[str, Any]) -> float:
    """Return the expected seconds of a build: observed, from the manifest, or a guess."""
    observed_s = observed(name).typical_build_s()
    if observed_s is not None:
        return observed_s
    minutes = MINUTES.search(str(table.get("heavy", "")))
    if minutes:
        return 60.0 * float(minutes["minutes"])
    if "expected_s" in table:
        return float(table["expected_s"])
    return BUILD_GUESS_S if table.get("commands") else 0.0


def check_requirements(cell: Cell) -> None:
    """Check that this host has the programs to build a cell and to run its services.

    Services that only some treatments need are not included (`check_services`). Programs are
    started only to read their versions. Raise MissingError if one is missing.
    """
    require(cell.document["requires"], cell.name)
    require_versions(cell.document["requires"], cell.document["versions"], cell.name)
    middleware = cell.middleware
    needs = (middleware.environment or {}).get("requires", [])
    require(needs, f"the environment of {middleware.name}")
    check_services(middleware, {n: t for n, t in middleware.services.items() if "when" not in t})


def check_services(middleware: Middleware, services: Mapping[str, Mapping[str, Any]]) -> None:
    """Check that this host has the programs of services. Raise MissingError if one is missing."""
    for name, service in services.items():
        require(service.get("requires", []), f"the {name} of {middleware.name}")


def require(names: Sequence[str], wanted_by: str) -> None:
    """Check that executables, and files given as /PATH, exist. The error names `wanted_by`."""
    # Debian installs daemons in sbin, which is not on the PATH of an ordinary user.
    path = os.environ.get("PATH", os.defpath) + ":/usr/local/sbin:/usr/sbin"
    checked = [name for name in names if not name.startswith("{")]
    paths = [name for name in checked if name.startswith("/")]
    lacking = [n for n in set(checked) - set(paths) if shutil.which(n, path=path) is None]
    lacking = sorted(lacking + [name for name in paths if not os.path.exists(name)])
    if lacking:
        raise LackingError(wanted_by, lacking)


def laid_out(folder: Path, patterns: Sequence[str]) -> Iterator[tuple[str, Path, str]]:
    """Yield (path relative to `folder`, file, sha256) of all files that match `patterns`."""
    seen: set[Path] = set()
    for pattern in patterns:
        matches = sorted(folder.glob(pattern))
        if not matches:
            raise UsageError(f"{folder}: inputs: no file matches {pattern!r}")
        for match in matches:
            files = sorted(match.rglob("*")) if match.is_dir() else [match]
            for path in files:
                relative = path.relative_to(folder)
                skipped = SKIPPED_NAMES.intersection(relative.parts) or path.suffix == ".pyc"
                if path.is_file() and path not in seen and not skipped:
                    seen.add(path)
                    yield str(relative), path, hashlib.sha256(path.read_bytes()).hexdigest()


def host_digests(patterns: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the sha256 of every file of this host that matches `patterns`, by path.

    A pattern is `NAME/GLOB`. The glob is searched below each folder of the search path in the
    environment variable NAME. An upgrade changes these files but no variable.
    """
    digests: dict[str, str] = {}
    for pattern in patterns:
        variable, _, below = pattern.partition("/")
        for folder in filter(None, environ.get(variable, "").split(":")):
            for path in sorted(Path(folder).glob(below)):
                if path.is_file():
                    digests[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return digests


def substitute(
    argv: Sequence[str], words: Mapping[str, str], lists: Mapping[str, Sequence[str]]
) -> list[str]:
    """Replace `{word}` in arguments, and splice `{list...}`. Unknown braces remain."""
    result: list[str] = []
    for argument in argv:
        if argument.startswith("{") and argument.endswith("...}"):
            inner = lists.get(argument[1:-4], [])
            result += substitute(inner, words, {})
            continue
        replaced = argument
        for name, value in words.items():
            replaced = replaced.replace("{" + name + "}", value)
        result.append(replaced)
    return result


def merge_env(base: Mapping[str, str], overlay: Mapping[str, str]) -> dict[str, str]:
    """Merge environments. For search paths, the value of the overlay precedes the other value."""
    merged = dict(base)
    for name, value in overlay.items():
        both = name.endswith("PATH") and name in merged and merged[name] != value
        merged[name] = f"{value}:{merged[name]}" if both else value
    return merged


def digest_of(*parts: Any) -> str:
    """Return a stable hash of nested values. Files are hashed as (relative path, digest)."""

    def plain(value: Any) -> Any:
        if isinstance(value, tuple) and len(value) == 3 and isinstance(value[1], Path):
            return [value[0], value[2]]
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        return value

    text = json.dumps(plain(list(parts)), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]
