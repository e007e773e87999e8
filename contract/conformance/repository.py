"""Cells built from the repository's folders, for tests of the suite and of the kits."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .cell import CellUnderTest, wire_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
BUILD_TIMEOUT_S = 600


def read_toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _manifest(*parts: str) -> dict[str, Any]:
    return read_toml(ROOT.joinpath(*parts))


def kit_languages() -> list[str]:
    """Append lines to `self.lines` until the node's output ends. This method runs in a thread."""
    return sorted(path.parent.name for path in (ROOT / "languages").glob("*/mutants.toml"))


def proving_middleware(language: str) -> str:
    """Return the middleware whose cell tests a language's kit, from the kit's `mutants.toml`."""
    return str(_manifest("languages", language, "mutants.toml").get("middleware", "loopback"))


def without(language: str) -> dict[str, str]:
    """Return the clauses that the cell of a kit's tests cannot test, each with the reason."""
    return dict(_manifest("languages", language, "mutants.toml").get("without", {}))


def missing_tools(language: str) -> list[str]:
    """Return the missing tools that the cell of a kit's tests requires."""
    folder = ("middleware", proving_middleware(language), language)
    needed = [*_manifest("languages", language, "language.toml").get("requires", []),
              *_manifest(*folder, "node.toml").get("requires", [])]  # fmt: skip
    return [name for name in needed if not os.path.exists(name) and shutil.which(name) is None]


def _replaced(words: list[str], names: Mapping[str, Any]) -> list[str]:
    """Return a command with `{name}` replaced by its value, `{name...}` by all items of a list."""
    arguments: list[str] = []
    for word in words:
        if word.endswith("...}"):
            arguments += names[word[1:-4]]
            continue
        arguments.append(re.sub(r"\{(\w+)\}", lambda match: str(names[match[1]]), word))
    return arguments


def _allowed(middleware: dict[str, Any], node: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the supported values of each setting whose manifests list them."""
    own = node.get("settings", {})
    tables = {
        name: {**table, **own.get(name, {})} for name, table in middleware["settings"].items()
    }
    return {name: table["allowed"] for name, table in tables.items() if "allowed" in table}


def proving_folder(language: str, middleware: str = "") -> Path:
    """Return the folder of the cell that tests a language's kit, or of `middleware`'s cell."""
    return ROOT / "middleware" / (middleware or proving_middleware(language)) / language


def proving_cell(
    language: str,
    build: Path,
    kit: Path | None = None,
    extra_flags: tuple[str, ...] = (),
    cell: Path | None = None,
    middleware_name: str = "",
) -> CellUnderTest:
    """Build the cell that tests a kit in the folder `build`, and return it.

    `kit` and `cell` are the folders of the kit and of the cell; the defaults are the repository's.
    `middleware_name` selects the cell of another middleware.
    Source and kit have the same layout as for a run: the kit is the folder `_kit` in the source.
    Raise RuntimeError with the end of the compiler's messages if the build fails.
    """
    folder = proving_folder(language, middleware_name).parent
    tables = (_manifest("languages", language, "language.toml"),
              read_toml(folder / language / "node.toml"))  # fmt: skip
    middleware = read_toml(folder / "middleware.toml")
    source = build / "source"
    ignored = shutil.ignore_patterns("__pycache__", "tests", "target")
    shutil.copytree(cell or folder / language, source, ignore=ignored)
    shutil.copytree(kit or ROOT / "languages" / language / "kit", source / "_kit", ignore=ignored)
    names: dict[str, Any] = {
        "source": str(source), "build": str(build), "python": sys.executable,
        "kit": str(source / "_kit"), "cache": str(ROOT / "target" / "compilers"),
    }  # fmt: skip
    merged: dict[str, Any] = {"build": {}, "run": {}}
    for table in tables:
        for name in merged:
            merged[name].update(table.get(name, {}))
    names.update(merged["build"].get("lists", {}))
    for flags in [name for name in names if name.endswith("_flags")]:
        names[flags] = [*names[flags], *extra_flags]
    for command in merged["build"].get("commands", []):
        result = subprocess.run(
            _replaced(command, names), cwd=build, capture_output=True, text=True,
            timeout=BUILD_TIMEOUT_S, check=False,
        )  # fmt: skip
        if result.returncode:
            error = result.stderr[-2000:]
            raise RuntimeError(f"the build of {folder.name}/{language} fails: {error}")
    node = tables[1]
    return CellUnderTest(
        name=f"{folder.name}/{language}",
        argv=_replaced(merged["run"]["argv"], names),
        env={k: _replaced([v], names)[0] for k, v in merged["run"].get("env", {}).items()},
        patterns=node["patterns"],
        capabilities=node["capabilities"],
        listens={name: table["listens"] for name, table in middleware["patterns"].items()},
        settings={name: table["default"] for name, table in middleware["settings"].items()},
        allowed=_allowed(middleware, node),
        payload_bytes_max=middleware.get("payload_bytes_max"),
        record_bytes_max=middleware.get("record_bytes_max"),
        wire_name=node.get("wire", ""),
        payload_bytes_min=node.get("payload_bytes_min", tables[0].get("payload_bytes_min", 0)),
        wire=wire_of(folder),
    )
