"""A request whose body is shorter than its declared length has not arrived and is not counted.

A client causes such a request if it aborts a call while sending, for example at the timeout. The
tests cover all cells of calls over HTTP: REST and JSON-RPC.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from contract.conformance.cell import CellUnderTest
from contract.conformance.process import NodeProcess
from contract.conformance.spec import base_spec
from wattwire.catalog import Catalog

HANG_S = 120.0
OVER_HTTP = ("rest", "rpc")
RESET = struct.pack("ii", 1, 0)
"""Value of SO_LINGER with which closing a connection resets it."""
TYPES = {"bytes": "application/octet-stream", "text": "text/plain", "record": "application/json"}
CHOSEN = ("rest/python", "rest/javascript")
CELLS = [
    pytest.param(name, marks=[] if name in CHOSEN else [pytest.mark.matrix])
    for name in Catalog().cells
    for cell in [Catalog().cell(name)]
    if cell.middleware.name in OVER_HTTP and cell.document.get("wire") != "net-rpc"
]


def send_truncated(url: str, content_type: str, sent: bytes, length: int) -> None:
    """Send a POST that declares `length` and ends after `sent`: by a close and by a reset."""
    parts = urlsplit(url)
    head = (
        f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        f"Content-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"
    )
    for linger in (None, RESET):
        connection = socket.create_connection((parts.hostname, parts.port), HANG_S)
        connection.sendall(head.encode() + sent)
        time.sleep(0.2)  # lets the server begin to read before the end
        if linger is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS, indirect=True)
def test_a_truncated_request_is_not_counted(cell: CellUnderTest, tmp_path: Path) -> None:
    for encoding, content_type in TYPES.items():
        if f"encoding.{encoding}" not in cell.capabilities:
            continue
        text = "application/json" if cell.middleware == "rpc" else content_type
        with serving(cell, encoding, tmp_path / encoding) as server:
            (url,) = server.fields("LISTENING")["endpoints"]
            for sent in (b"", b'{"' + b"0" * 30):
                send_truncated(url, text, sent, 200)
            time.sleep(0.5)  # time for a wrong count
            server.write(f"GO {time.monotonic_ns() + 500_000_000}\n")
            time.sleep(1.0)
            server.write("STOP\n")
            done = server.wait_line("DONE", HANG_S)
            assert done is not None, server.last_output()
        counts = {name: (done.fields or {})[name] for name in ("received", "corrupt", "foreign")}
        # The counts are null for unrecorded servers (C-34).
        assert not any(counts.values()), f"{encoding}: {counts}"


@contextlib.contextmanager
def serving(cell: CellUnderTest, encoding: str, folder: Path) -> Iterator[NodeProcess]:
    """Start a server without a client, and wait until it is READY."""
    size = 128 if encoding == "record" else 64
    spec = base_spec(cell, "service", "server", payload__encoding=encoding, payload__bytes=size)
    server = NodeProcess(cell, spec, folder, f"server ({cell.name})")
    try:
        assert server.wait_line("READY", HANG_S) is not None, server.last_output()
        yield server
    finally:
        server.kill()
