"""The TCP and UDP servers of the bridge, and the division of a stream into messages."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest

from contract.conformance.cell import CellUnderTest
from contract.conformance.process import NodeProcess
from contract.conformance.spec import base_spec, new_token
from middleware.rosbridge.environment.streams import CborItem, InvalidStream, MessageStream
from middleware.rosbridge.tests.conftest import Services
from middleware.rosbridge.tests.websocket_peer import HANG_S, WebSocketPeer

BYTES = "std_msgs/UInt8MultiArray"
OPEN = [
    {"op": "set_level", "level": "info"},
    {"op": "advertise", "id": "out", "topic": "/b", "type": BYTES},
    {"op": "subscribe", "id": "in", "topic": "/b", "type": BYTES},
]
PUBLISH = {"op": "publish", "topic": "/b", "msg": {"data": "AP8="}}


class Stream:
    """A connection to the bridge's TCP server."""

    def __init__(self, endpoint: str) -> None:
        host, _, port = endpoint.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=HANG_S)
        self._stream = MessageStream(1 << 24)
        self._messages: Iterator[bytes] = iter(())

    def receive(self) -> Any:
        while (message := next(self._messages, None)) is None:
            self._messages = self._stream.messages(self.socket.recv(65_536))
        return json.loads(message)

    def close(self) -> None:
        self.socket.close()


def encoded(operations: list[dict[str, Any]]) -> bytes:
    return "".join(map(json.dumps, operations)).encode()


def test_operations_over_tcp_need_no_separator_and_may_arrive_in_parts(services: Services) -> None:
    with contextlib.closing(Stream(services.tcp)) as peer:
        peer.socket.sendall(encoded(OPEN))
        assert {peer.receive()["id"], peer.receive()["id"]} == {"in", "out"}
        for byte in encoded([PUBLISH]):
            peer.socket.sendall(bytes([byte]))
        assert peer.receive()["msg"]["data"] == "AP8="


def test_half_an_object_over_tcp_ends_only_its_own_connection(services: Services) -> None:
    with contextlib.closing(Stream(services.tcp)) as peer:
        peer.socket.sendall(encoded(OPEN))
        assert {peer.receive()["id"], peer.receive()["id"]} == {"in", "out"}
        broken = Stream(services.tcp)
        broken.socket.sendall(encoded(OPEN) + encoded([PUBLISH])[:-4])
        broken.close()
        peer.socket.sendall(encoded([PUBLISH]))
        assert peer.receive()["msg"]["data"] == "AP8="


def test_bytes_that_are_no_object_over_tcp_get_an_error(services: Services) -> None:
    with contextlib.closing(Stream(services.tcp)) as peer:
        peer.socket.sendall(b'1, 2 {"op": "fly"}}' + encoded(OPEN))
        texts = [peer.receive()["msg"] for _ in range(2)]
        assert all("allowed: an object in JSON" in text for text in texts), texts
        assert {peer.receive()["id"], peer.receive()["id"]} == {"in", "out"}


def test_a_message_that_exceeds_a_datagram_becomes_an_error(services: Services) -> None:
    host, _, port = services.udp.rpartition(":")
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
        contextlib.closing(WebSocketPeer(services.websocket)) as publisher,
    ):
        datagrams.settimeout(HANG_S)
        datagrams.connect((host, int(port)))
        for operation in OPEN:
            datagrams.send(json.dumps(operation).encode())
        confirmed = {json.loads(datagrams.recv(65_536))["id"] for _ in range(2)}
        assert confirmed == {"in", "out"}
        publisher.send(op="advertise", topic="/b", type=BYTES)
        publisher.send_text(json.dumps({**PUBLISH, "msg": {"data": "A" * 65_500}}))
        status = json.loads(datagrams.recv(65_536))
        assert (status["op"], status["level"]) == ("status", "error")
        assert "allowed over this transport: 65507" in status["msg"]
        datagrams.send(json.dumps(PUBLISH).encode())
        assert json.loads(datagrams.recv(65_536))["msg"]["data"] == "AP8="


@pytest.mark.parametrize(
    ("parts", "messages"),
    [
        ([b'{"a": "}"}{"b": {}}'], [b'{"a": "}"}', b'{"b": {}}']),
        ([b'{"a": "\\', b'"}"', b"}"], [b'{"a": "\\"}"}']),
        ([b'{"a": "\\\\', b'"}{}'], [b'{"a": "\\\\"}', b"{}"]),
        ([b'{"a"', b": 1}", b"\n{}"], [b'{"a": 1}', b"\n{}"]),
        ([b"\xa1\x61a\x18", b"\x7b{}"], [b"\xa1\x61a\x18\x7b", b"{}"]),
        ([b"\xa1\x61a\x44{{{", b"{\xa0"], [b"\xa1\x61a\x44{{{{", b"\xa0"]),
        ([b"\xa1\x61a\x82\x01\xc1\x02\xa0"], [b"\xa1\x61a\x82\x01\xc1\x02", b"\xa0"]),
        ([b"\xa1\x61a\xfb\x00\x00\x00\x00", b"\x00\x00\x00\x00\xa0"],
         [b"\xa1\x61a\xfb" + bytes(8), b"\xa0"]),
    ],
)  # fmt: skip
def test_a_stream_is_split_into_objects_and_maps(parts: list[bytes], messages: list[bytes]) -> None:
    stream = MessageStream(1000)
    assert [message for part in parts for message in stream.messages(part)] == messages
    whole = b"".join(parts)
    stream = MessageStream(1000)
    one_by_one = [m for at in range(len(whole)) for m in stream.messages(whole[at : at + 1])]
    assert one_by_one == messages


class Counted(bytes):
    """Bytes that count how many single bytes of them are read."""

    reads = 0

    def __getitem__(self, index: Any) -> Any:
        Counted.reads += isinstance(index, int)
        return super().__getitem__(index)


def test_no_byte_of_a_growing_map_is_examined_twice() -> None:
    whole = b"\xb9\x03\xe8" + b"\x01\x02" * 1000
    item, Counted.reads = CborItem(), 0
    ends = [item.end(Counted(whole[:size])) for size in range(1, len(whole) + 1)]
    assert ends == [0] * (len(whole) - 1) + [len(whole)]
    assert Counted.reads <= 3 * len(whole)


def test_a_stream_refuses_a_message_without_an_end() -> None:
    with pytest.raises(InvalidStream, match="more than 10 bytes"):
        list(MessageStream(10).messages(b'{"a": "0123456789'))
    with pytest.raises(InvalidStream, match="indefinite length at byte 3"):
        list(MessageStream(10).messages(b"\xa1\x61a\x5f\x41a\xff"))


def test_a_payload_that_exceeds_a_datagram_in_base64_is_refused(
    cell: CellUnderTest, services: Services, tmp_path: Path
) -> None:
    spec: dict[str, Any] = base_spec(cell, "topic", "publisher", settings__server="udp")
    endpoints = {"run": new_token(), "peers.endpoints": list(astuple(services))}
    spec |= {**endpoints, "payload.bytes": 60_000, "ready_timeout_ms": 1_000}
    node = NodeProcess(cell, spec, tmp_path / "long", "publisher")
    try:
        assert node.wait_exit(HANG_S) == 3, node.last_output()
        reason = node.fields("ERROR")["reason"]
    finally:
        node.kill()
    assert "payload.bytes = 60000 with settings.server = 'udp'" in reason
    longest = int(reason.split("at most ")[-1].split()[0])
    # Without a subscriber, a publisher with a payload that fits ends with 4.
    node = NodeProcess(cell, {**spec, "payload.bytes": longest}, tmp_path / "fits", "publisher")
    try:
        assert node.wait_exit(HANG_S) == 4, node.last_output()
    finally:
        node.kill()
