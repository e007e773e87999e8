"""`python tools/rust_cells.py [FOLDER…]`: create a workspace for Rust cells, and lint them.

A cell depends on its language's kit at `_kit`, which exists only in a build. This program creates a
folder for each cell under target/rust-cells with links to the original files. There, cargo, clippy
and editors work on the committed files. Without FOLDER, it processes all cells.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

ROOT = Path(__file__).resolve().parents[1]
KIT = ROOT / "languages" / "rust" / "kit"
WORKSHOP = ROOT / "target" / "rust-cells"
CLIPPY = ("cargo", "clippy", "--quiet", "--locked", "--all-targets", "--target-dir")


def rust_cells() -> list[Path]:
    """Return the folders of all cells that are crates."""
    return sorted(path.parent for path in (ROOT / "middleware").glob("*/*/Cargo.toml"))


def heavy(cell: Path) -> str:
    """Return the manifest's text about a long build of the cell; "" for a short build."""
    table = tomllib.loads((cell / "node.toml").read_text(encoding="utf-8"))
    return str(table.get("build", {}).get("heavy", ""))


def lay_out(cell: Path, workshop: Path = WORKSHOP) -> Path:
    """Create a folder with links to the cell's files and to the kit as `_kit`, and return it."""
    folder = workshop / f"{cell.parent.name}-{cell.name}"
    folder.mkdir(parents=True, exist_ok=True)
    for link in folder.iterdir():
        if link.is_symlink():
            link.unlink()
    for path in cell.iterdir():
        (folder / path.name).symlink_to(path)
    (folder / "_kit").symlink_to(KIT)
    return folder


def lint(crate: Path) -> bool:
    """Return whether clippy accepts a crate. Its messages go to standard error."""
    command = [*CLIPPY, str(WORKSHOP / "target"), "--", "-D", "warnings"]
    return subprocess.run(command, cwd=crate, check=False).returncode == 0


def main(words: Sequence[str]) -> int:
    cells = [Path(word).resolve() for word in words] or rust_cells()
    failed = [] if lint(KIT) else [KIT]
    for cell in cells:
        folder = lay_out(cell)
        heavy_build = "" if words or os.environ.get("WATTWIRE_HEAVY") == "1" else heavy(cell)
        if heavy_build:
            print(
                f"{cell.relative_to(ROOT)}: not linted, its build takes {heavy_build}",
                file=sys.stderr,
            )
        elif not lint(folder):
            failed.append(cell)
    for crate in failed:
        print(f"{crate}: clippy has something to say, see above", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
