"""Read rig files."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from wattwire.catalog.catalog import Catalog
from wattwire.catalog.manifest import read_toml
from wattwire.model.deployment import PLACED
from wattwire.model.rig import Rig, read_rig


def load_rig(path: Path, catalog: Catalog | None = None) -> Rig:
    """Return the rig of a file. Raises UsageError for an unreadable file or an invalid value."""
    catalog = catalog or Catalog()
    return read_rig(read_toml(path), str(path), catalog.links, placed_keys(catalog))


def placed_keys(catalog: Catalog) -> Collection[str]:
    """Return the keys that a placement may have: roles, general words and service processes."""
    services = (middleware.services for middleware in catalog.middleware.values())
    return PLACED.union(*services)
