"""List the files that are committed or could be committed."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

CODE_SUFFIXES = frozenset(
    {".py", ".rs", ".c", ".cc", ".cpp", ".cu", ".h", ".hpp", ".go", ".java", ".js", ".ts", ".cs",
     ".sh", ".rb", ".php", ".m"}
)  # fmt: skip
BRACE_SUFFIXES = CODE_SUFFIXES - {".py", ".sh", ".rb", ".php", ".m"}
CLOSED_FOLDERS = ("wattwire", "agent", "emulator", "layerprof", "contract")
OPEN_MANIFESTS = {
    "middleware": "middleware.toml",
    "meters": "meter.toml",
    "links": "link.toml",
    "bridges": "bridge.toml",
    "studies": "study.toml",
}
"""Open folder → the manifest that makes one of its folders a member."""


@cache
def files() -> tuple[Path, ...]:
    """Return the sorted files that git tracks or would add, relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    names = sorted(name for name in listed.split("\0") if name)
    return tuple(Path(name) for name in names if (ROOT / name).is_file())


def text_of(path: Path) -> str | None:
    """Return the text of a file; None if it is not UTF-8 (pictures, golden bytes)."""
    try:
        return (ROOT / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


@cache
def texts() -> tuple[tuple[Path, str], ...]:
    """Return the paths and contents of all text files."""
    return tuple((path, text) for path in files() if (text := text_of(path)) is not None)


def is_fixture(path: Path) -> bool:
    """Return whether a file is captured or golden data with a given format."""
    return bool({"fixtures", "vectors", "data"} & set(path.parts[:-1]))


def is_closed(path: Path) -> bool:
    """Return whether a file belongs to the closed code: the core and the kits.

    `kit/web` contains code that HTTP cells share, and is not part of a kit.
    """
    parts = path.parts
    return parts[0] in CLOSED_FOLDERS or (
        parts[0] == "languages"
        and len(parts) > 2
        and parts[2] == "kit"
        and not {"tests", "web"} & set(parts)
    )


def open_names() -> frozenset[str]:
    """Return the names of all members of open folders, which closed code must not contain."""
    found = set()
    for folder, manifest in OPEN_MANIFESTS.items():
        found |= {path.parent.name for path in (ROOT / folder).glob(f"*/{manifest}")}
    return frozenset(found) - {"loopback", "fake"}
