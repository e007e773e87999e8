"""What must be built before a cell runs: its middleware's environment, then the cell itself.

An artifact's key is the hash of everything that goes in: file contents, commands, the key of
the environment, the interpreter. The same key is never built twice on one host.
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

from wattwire.catalog import Cell, Middleware
from wattwire.model.errors import MissingError, UsageError
from wattwire.rig import cache
from wattwire.rig.agent import AgentClient, AgentError
from wattwire.rig.observed import note_build, observed
from wattwire.rig.versions import require_versions

BUILD_GUESS_S = 8.0
"""A build of which nothing is known: a virtual environment with some packages takes 6 to 9 s."""
STEP = re.compile(r"\[(?P<step>\d+)/\d+\] ")
"""What the agent's line begins with when a command begins."""
MINUTES = re.compile(r"(?P<minutes>\d+) minutes?")
SKIPPED_NAMES = frozenset({"__pycache__", "tests", "target", ".pytest_cache", ".mypy_cache"})


def host_python() -> str:
    """The interpreter that runs cells: the base one, so that no cell sees our own packages."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


@dataclass(frozen=True)
class Artifact:
    """A finished build: its folder, and what it exports to those who use it."""

    key: str
    directory: Path | None
    cached: bool = True
    exports: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class CellBuild:
    """A cell that is ready to run. `argv` lacks --spec and --out."""

    cell: Cell
    key: str
    argv: tuple[str, ...]
    env: dict[str, str]
    facts: dict[str, Any]
    cached: bool


@dataclass(frozen=True)
class BuildStep:
    """How far a build is: `number` of `builds` that are due, command `step` of its `steps`.

    Step 0 comes before the first command; `done` after the last.
    """

    name: str
    number: int
    builds: int
    step: int
    steps: int
    elapsed_s: float
    done: bool = False
    expected: str = ""
    """How long the manifest says that it takes, in words; "" where it says nothing."""


class NotBuiltError(MissingError):
    """A builder that only looks was asked for what is not built yet.

    `heavy` says in words how long it takes; `expected_s` is a forecast in seconds.
    """

    def __init__(self, name: str, heavy: str, expected_s: float = 0.0) -> None:
        super().__init__(f"{name} is not built yet; `wattwire build {name}` builds it")
        self.built_name, self.heavy, self.expected_s = name, heavy, expected_s


class LackingError(MissingError):
    """Programs that a cell needs are not on PATH."""

    def __init__(self, wanted_by: str, programs: list[str]) -> None:
        super().__init__(
            f"{wanted_by}: {', '.join(programs)} is not on PATH; install it and try again"
        )
        self.programs = programs


class Builder:
    """Builds cells on one host through its agent and remembers what it built.

    With `look` nothing is built: what is not there yet raises NotBuiltError.
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
        """Build a cell. Raises MissingError where this host lacks what it needs."""
        if cell.known_as not in self._cells:
            check_requirements(cell)
            environment = self._environment(cell.middleware)
            self._cells[cell.known_as] = self._build_cell(cell, environment)
        return self._cells[cell.known_as]

    def unbuilt(self, cells: Iterable[Cell]) -> dict[str, float]:
        """What has to be built for these cells: name of a cell or environment → seconds expected.

        Cells that cannot be built here are left out. Nothing is built, and the builds that
        follow are counted as parts of these.
        """
        before, self._look = self._look, True
        found: dict[str, float] = {}
        try:
            for cell in cells:
                try:
                    self.cell(cell)
                except NotBuiltError as error:
                    found[error.built_name] = error.expected_s
                    if error.built_name != cell.name:  # its key is known only after that
                        found[cell.name] = expected_build_s(cell.name, cell.document["build"])
                except MissingError:
                    continue
        finally:
            self._look = before
        self._due = self._begun + len(found)
        return found

    def _environment(self, middleware: Middleware) -> Artifact:
        place = (middleware.name, middleware.folder)
        if place in self._environments:
            return self._environments[place]
        table = middleware.environment
        if table is None:
            return Artifact("", None)
        files = list(laid_out(middleware.folder, table.get("inputs", [])))
        # Only the variables that the manifest names are part of the key: a changed PATH is not.
        inherited = {n: os.environ.get(n, "") for n in table.get("host_env", [])}
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
        self._environments[place] = artifact
        return artifact

    def _build_cell(self, cell: Cell, environment: Artifact) -> CellBuild:
        document = cell.document
        files = list(laid_out(cell.folder, document["inputs"]))
        if cell.language_folder is not None and "kit" in document:
            kit = laid_out(cell.language_folder / document["kit"], ["*"])
            files += [(f"_kit/{relative}", path, digest) for relative, path, digest in kit]
        exports = environment.exports
        here = exports.get("cells", {}).get(cell.folder.name, {})
        if "absent" in here:
            raise MissingError(f"{cell.name}: {here['absent']}")
        words = {
            "python": exports.get("python", host_python()),
            "environment": str(environment.directory or ""),
            "kit": "{source}/_kit",
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
        final = {
            **words,
            "source": f"{directory}/source",
            "build": directory,
            "kit": f"{directory}/source/_kit",
        }
        argv = tuple(substitute(document["run"]["argv"], final, lists))
        own_env = {
            name: substitute([value], final, lists)[0]
            for name, value in document["run"]["env"].items()
        }
        env = merge_env(exports.get("env", {}), own_env)
        return CellBuild(cell, key, argv, env, exports.get("facts", {}), bool(reply.get("cached")))

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
            done = self._agent.built(key)
            if done is not None:
                return done
            heavy = table.get("heavy")
            if self._look:
                raise NotBuiltError(name, str(heavy or ""), expected_build_s(name, table))
            if heavy and os.environ.get("WATTWIRE_HEAVY") == "skip":
                raise MissingError(
                    f"{name} is not built yet, which takes {heavy}; WATTWIRE_HEAVY=skip leaves it "
                    f"out. `wattwire build {name}` builds it."
                )
            return self._build_now(name, key, files, commands, table, env)
        except AgentError as error:
            folder = cache.folder()
            if error.kind in {"permission", "io"} and not cache.writable(folder):
                raise MissingError(
                    f"{name} is not built yet, and the cache folder {folder} cannot be written. "
                    "Make it writable, or name another: WATTWIRE_CACHE=FOLDER."
                ) from error
            raise MissingError(
                f"{name} could not be built: {error}. Mend what the log says and try again; "
                f"`wattwire build {name}` repeats only this."
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
        """Build, tell each step, and remember how long it took."""
        self._begun += 1
        self._due = max(self._due, self._begun)
        began_s, reached = time.monotonic(), 0

        def tell(text: str = "", done: bool = False) -> None:
            nonlocal reached
            match = STEP.match(text)
            reached = int(match["step"]) if match else reached
            step = BuildStep(
                name, self._begun, self._due, reached, len(commands),
                time.monotonic() - began_s, done, str(table.get("heavy", "")),
            )  # fmt: skip
            self._progress(step)

        tell()
        reply = self._agent.build(
            key, files, commands, env, int(table.get("timeout_s", 1800)), tell
        )
        tell(done=True)
        if not reply.get("cached"):  # else another process built it meanwhile
            note_build(name, float(reply.get("seconds", 0.0)))
        return reply


def expected_build_s(name: str, table: Mapping[str, Any]) -> float:
    """Seconds that a build will take: as earlier here, else by its manifest, else a guess."""
    known = observed(name).typical_build_s()
    if known is not None:
        return known
    minutes = MINUTES.search(str(table.get("heavy", "")))
    if minutes:
        return 60.0 * float(minutes["minutes"])
    if "expected_s" in table:
        return float(table["expected_s"])
    return BUILD_GUESS_S if table.get("commands") else 0.0


def check_requirements(cell: Cell) -> None:
    """Check that this host has the programs to build a cell and to run its services.

    Starts nothing but programs that are asked for their version. Raises MissingError.
    """
    require(cell.document["requires"], cell.name)
    require_versions(cell.document["requires"], cell.document["versions"], cell.name)
    middleware = cell.middleware
    needs = (middleware.environment or {}).get("requires", [])
    require(needs, f"the environment of {middleware.name}")
    for name, service in middleware.services.items():
        require(service.get("requires", []), f"the {name} of {middleware.name}")


def require(names: Sequence[str], wanted_by: str) -> None:
    """Check that executables, and files named /PATH, are there; says who wants a missing one."""
    # Debian keeps daemons in sbin, which an ordinary user's PATH lacks.
    path = os.environ.get("PATH", os.defpath) + ":/usr/local/sbin:/usr/sbin"
    wanted = [name for name in names if not name.startswith("{")]
    files = [name for name in wanted if name.startswith("/")]
    lacking = [n for n in set(wanted) - set(files) if shutil.which(n, path=path) is None]
    lacking = sorted(lacking + [name for name in files if not os.path.exists(name)])
    if lacking:
        raise LackingError(wanted_by, lacking)


def laid_out(folder: Path, patterns: Sequence[str]) -> Iterator[tuple[str, Path, str]]:
    """Yield (path relative to `folder`, file, sha256) of all files that `patterns` name."""
    seen: set[Path] = set()
    for pattern in patterns:
        matches = sorted(folder.glob(pattern))
        if not matches:
            raise UsageError(f"{folder}: inputs: nothing is called {pattern!r} here")
        for match in matches:
            found = sorted(match.rglob("*")) if match.is_dir() else [match]
            for path in found:
                relative = path.relative_to(folder)
                skipped = SKIPPED_NAMES.intersection(relative.parts) or path.suffix == ".pyc"
                if path.is_file() and path not in seen and not skipped:
                    seen.add(path)
                    yield str(relative), path, hashlib.sha256(path.read_bytes()).hexdigest()


def host_digests(patterns: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the sha256 of every file of this host that `patterns` name, by its path.

    A pattern is `NAME/GLOB`: the glob is searched below each folder of the search path that the
    environment variable NAME holds. An upgrade changes these files while no variable changes.
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
    """Replace `{word}` inside arguments and splice `{list...}`; unknown braces stay."""
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
    """Merge environments; variables that are search paths are joined, the overlay first."""
    merged = dict(base)
    for name, value in overlay.items():
        both = name.endswith("PATH") and name in merged and merged[name] != value
        merged[name] = f"{value}:{merged[name]}" if both else value
    return merged


def digest_of(*parts: Any) -> str:
    """A stable hash of nested values; of files only (relative path, digest) counts."""

    def plain(value: Any) -> Any:
        if isinstance(value, tuple) and len(value) == 3 and isinstance(value[1], Path):
            return [value[0], value[2]]
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        return value

    text = json.dumps(plain(list(parts)), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]
