"""Pack the sources of the agent, for hosts on which this machine's agent does not run."""

from __future__ import annotations

import functools
import gzip
import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

from wattwire.catalog.home import home

WORKSPACE = ("Cargo.toml", "Cargo.lock")
CRATES = ("agent", "emulator")
"""Members of the workspace. cargo needs all of them, even to build one."""
MORE = "more"
"""Folder of the meters of other roots, which WATTWIRE_PATH names in the build."""


@functools.cache
def source_files() -> dict[str, bytes]:
    """Return the files (path in the archive → content); empty if this installation has none."""
    root = home()
    if not all((root / name).is_file() for name in WORKSPACE):
        return {}
    files = {name: (root / name).read_bytes() for name in WORKSPACE}
    for crate in CRATES:
        for path in sorted((root / crate).rglob("*")):
            relative = path.relative_to(root)
            if path.suffix in (".rs", ".toml", ".md") and "target" not in relative.parts:
                files[str(relative)] = path.read_bytes()
    files.update(_meters(root, ""))
    roots = [Path(folder) for folder in os.environ.get("WATTWIRE_PATH", "").split(":") if folder]
    for root in reversed(roots):  # the first root has precedence
        files.update(_meters(root, f"{MORE}/"))
    return files


def _meters(root: Path, prefix: str) -> Iterator[tuple[str, bytes]]:
    for path in sorted(root.glob("meters/*/*")):
        if path.suffix in (".rs", ".toml"):
            yield f"{prefix}{path.relative_to(root)}", path.read_bytes()


def source_hash(machine: str) -> str:
    """Return the hash of the sources and of a machine's architecture, such as "Linux aarch64"."""
    digest = hashlib.sha256(machine.encode())
    for name, content in source_files().items():
        digest.update(f"\0{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def packed_sources() -> bytes | None:
    """Return the sources as a compressed archive, or None if this installation has none."""
    files = source_files()
    if not files:
        return None
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), 6, mtime=0)
