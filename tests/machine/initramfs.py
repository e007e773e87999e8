"""Write an initramfs: an archive in the format `newc` of cpio, which the kernel unpacks."""

from __future__ import annotations

import stat
from collections.abc import Mapping

FOLDER = stat.S_IFDIR | 0o755
PROGRAM = stat.S_IFREG | 0o755
LINK = stat.S_IFLNK | 0o777
TRAILER = "TRAILER!!!"


def archive(entries: Mapping[str, tuple[int, bytes]]) -> bytes:
    """Return the archive of files: path without a leading slash → mode and content.

    Folders come before what they contain; the content of a link is its target.
    """
    parts = []
    for number, (path, (mode, content)) in enumerate(
        [*entries.items(), (TRAILER, (0, b""))], start=1
    ):
        name = path.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields)
        parts += [_padded(head + name), _padded(content)]
    return b"".join(parts)


def _padded(text: bytes) -> bytes:
    return text + b"\0" * (-len(text) % 4)
