"""Read the profiles of links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from wattwire.catalog.manifest import read_toml
from wattwire.model.errors import UsageError, unknown
from wattwire.model.links.profile import Link, read_link

MANIFEST = "link.toml"


def load_link(folder: Path) -> Link:
    """Return the link of a folder. Raises UsageError for an invalid manifest or trace."""
    manifest = folder / MANIFEST

    def read_file(name: str) -> str:
        path = folder / name
        if Path(name).name != name:
            raise UsageError(f"{manifest}: trace: found {name!r}; allowed: a file of this folder")
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{manifest}: trace: {name}: cannot be read: {error}") from error

    return read_link(folder.name, read_toml(manifest), str(manifest), read_file)


def links_like(folders: Mapping[str, Path], names: Sequence[str]) -> list[Link]:
    """Return the links of these names, or all links. Raises UsageError for an unknown name."""
    for name in names:
        if name not in folders:
            raise unknown("catalogue", "link", name, folders)
    return [load_link(folders[name]) for name in (names or sorted(folders))]
