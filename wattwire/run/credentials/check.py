"""Check private keys on their hosts before the processes of a run use them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from wattwire.model.errors import MissingError

if TYPE_CHECKING:
    from wattwire.hosts.host import Host

MODE_TIMEOUT_S = 5.0
OTHERS_MASK = 0o077


def require_private(host: Host, key: Path) -> None:
    """Raise MissingError if other users of a host can read a private key.

    Some file systems (FAT, some network file systems) give every file the same mode. The error
    ends the campaign, because it would meet every run. BusyBox has `stat -c` alone.
    """
    code, output = host.command(["stat", "-c", "%a", str(key)], MODE_TIMEOUT_S)
    mode = output.strip()
    if code or not mode.isdecimal():
        raise MissingError(f"{key} on host {host.name}: stat found no file with a mode: {mode}")
    if int(mode, 8) & OTHERS_MASK:
        raise MissingError(
            f"{key} on host {host.name}: found the mode {mode}, with which others can read this "
            "private key; allowed: 600. Its file system does not keep modes: choose another "
            "directory for the cache of the host (XDG_CACHE_HOME)."
        )
