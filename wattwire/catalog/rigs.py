"""Read rig files."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from wattwire.catalog.catalog import Catalog
from wattwire.catalog.links import links_like
from wattwire.catalog.manifest import read_toml
from wattwire.model.deployment import PLACED
from wattwire.model.errors import UsageError
from wattwire.model.links.kernel import check_expressible
from wattwire.model.links.profile import Link
from wattwire.model.rig import KERNEL, SSH_CONFIG, Rig, read_rig


def load_rig(path: Path, catalog: Catalog | None = None) -> Rig:
    """Return the rig of a file. Raises UsageError for an unreadable file or an invalid value.

    Its document has the absolute path of `ssh_config`, because a campaign that resumes reads the
    document without the file.
    """
    catalog = catalog or Catalog()
    document, placed = read_toml(path), placed_keys(catalog)
    rig = read_rig(document, str(path), catalog.links, placed)
    links_of_rig(rig, catalog)
    if not rig.ssh_config:
        return rig
    config = _beside(path, rig.ssh_config)
    return read_rig({**document, SSH_CONFIG: config}, str(path), catalog.links, placed)


def links_of_rig(rig: Rig, catalog: Catalog) -> dict[str, Link]:
    """Return the links of a rig's networks by name.

    Raises UsageError for an unknown or invalid link, and for one that its engine cannot express.
    """
    emulated = [spec for spec in rig.networks.values() if spec.is_emulated]
    names = sorted({spec.link for spec in emulated})
    links = {link.name: link for link in links_like(catalog.links, names)} if names else {}
    for spec in emulated:
        if spec.engine == KERNEL:
            check_expressible(links[spec.link], f"{rig.source}: networks.{spec.name}.engine")
    return links


def _beside(path: Path, config: str) -> str:
    """Return the absolute path of a configuration of ssh. Raises UsageError if unreadable."""
    file = path.absolute().parent / Path(config).expanduser()
    try:
        file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{path}: {SSH_CONFIG}: found {config!r}, which is the file {file}: {error.strerror}; "
            "allowed: a readable configuration file of ssh, relative to the rig file"
        ) from error
    return str(file)


def placed_keys(catalog: Catalog) -> Collection[str]:
    """Return the keys that a placement may have: roles, general words and service processes."""
    services = (middleware.services for middleware in catalog.middleware.values())
    return PLACED.union(*services)
