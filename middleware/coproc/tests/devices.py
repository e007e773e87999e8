"""The gateway's protocol in Python, and cells with a changed device."""

from __future__ import annotations

import contextlib
import shutil
import socket
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from contract.conformance.cell import CellUnderTest
from contract.conformance.group import HANG_S
from contract.conformance.process import NodeProcess
from contract.conformance.spec import base_spec, new_token
from wattwire.catalog import Cell
from wattwire.rig.builds import substitute

HEAD = struct.Struct("<4I16s")
WORK = struct.Struct("<4I")
ECHO, ENCRYPT = 0x57000001, 0x57000002
FRAME_BYTES = 40
PATIENCE_S = 60.0


@dataclass(frozen=True)
class BuiltCell:
    """A built cell of the middleware, with its manifest."""

    cell: Cell
    under_test: CellUnderTest

    @property
    def folder(self) -> Path:
        return Path(self.under_test.argv[0]).parent

    @property
    def device(self) -> Path:
        names = ("device", "firmware.elf")
        return next(self.folder / name for name in names if (self.folder / name).exists())

    def with_fault(self, folder: Path, file: str, find: str, new: str) -> CellUnderTest:
        """Return the cell with a device in which `find`, which occurs once, is `new`."""
        sources = folder / "source" / "environment"
        shutil.copytree(self.cell.middleware.folder / "environment", sources)
        path = sources / file
        text = path.read_text()
        assert text.count(find) == 1, f"{find!r} occurs {text.count(find)} times in {file}"
        path.write_text(text.replace(find, new))
        shutil.copy(self.under_test.argv[0], folder / "node")
        build = self.cell.document["build"]
        words = {"environment": str(folder), "build": str(folder)}
        subprocess.run(substitute(build["commands"][1], words, build["lists"]), check=True)
        return replace(self.under_test, argv=[str(folder / "node")])


class Device:
    """A device that a server node started."""

    def __init__(self, endpoint: str, effective: dict[str, Any]) -> None:
        host, _, port = endpoint.rpartition(":")
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.connect((host, int(port)))
        self.effective = effective
        self._call = 0

    def exchange(self, operation: int, key: bytes, message: bytes) -> tuple[bytes, bytes]:
        """Return the head and the data of the answer to a message of one piece."""
        self._call += 1
        request = HEAD.pack(operation, self._call, 0, len(message), key) + message
        self._socket.send(request)
        self._socket.settimeout(PATIENCE_S)
        answer = self._socket.recv(65_536)
        assert HEAD.unpack(answer[: HEAD.size])[:2] == (operation, self._call)
        return answer[: HEAD.size], answer[HEAD.size :]

    def encrypted(self, key: bytes, blocks: bytes) -> bytes:
        """Return the ciphertext of whole blocks, and check the frame around it."""
        message = bytes(16) + key + blocks + bytes(8)
        _, reply = self.exchange(ENCRYPT, key, message)
        assert (reply[:32], reply[-8:], len(reply)) == (message[:32], bytes(8), len(message))
        return reply[32:-8]

    def is_silent(self, datagram: bytes) -> bool:
        """Return whether the device does not answer this datagram."""
        self._socket.settimeout(0.3)
        self._socket.send(datagram)
        with contextlib.suppress(TimeoutError):
            self._socket.recv(65_536)
            return False
        return True

    def close(self) -> None:
        self._socket.close()


@contextlib.contextmanager
def server_node(cell: CellUnderTest, folder: Path, **changes: Any) -> Iterator[NodeProcess]:
    """Start a server; the caller reads its lines. It is killed at the end."""
    spec = {**base_spec(cell, "service", "server", **changes), "run": new_token()}
    node = NodeProcess(cell, spec, folder / spec["run"], f"server ({cell.name})")
    try:
        yield node
    finally:
        node.kill()


@contextlib.contextmanager
def started(cell: CellUnderTest, folder: Path, **changes: Any) -> Iterator[Device]:
    """Start a server, and yield its device."""
    with server_node(cell, folder, **changes) as node:
        line = node.wait_line("READY", HANG_S)
        assert line is not None and line.fields is not None, node.last_output()
        listening = node.fields("LISTENING")
        device = Device(listening["endpoints"][0], line.fields["effective"])
        try:
            yield device
        finally:
            device.close()
