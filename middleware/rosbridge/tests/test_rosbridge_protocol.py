"""Operations of the protocol: messages that pass the bridge, and operations that it rejects."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import Any

import pytest

from middleware.rosbridge.tests.conftest import Services
from middleware.rosbridge.tests.websocket_peer import HANDSHAKE, HANG_S, WebSocketPeer, frame

TOPICS_MAX = 256
UNREAD_S = 40
"""Time after which the defaults of websockets close a connection without an answer to a ping."""
BYTES = "std_msgs/UInt8MultiArray"


def opened(peer: WebSocketPeer, topic: str, kind: str) -> None:
    """Advertise and subscribe a topic, and wait until both are confirmed."""
    peer.send(op="set_level", level="info")
    peer.send(op="advertise", id="out", topic=topic, type=kind)
    peer.send(op="subscribe", id="in", topic=topic, type=kind)
    confirmed = [peer.receive(), peer.receive()]
    assert sorted(fields["id"] for fields in confirmed) == ["in", "out"], confirmed
    assert {fields["level"] for fields in confirmed} == {"info"}, confirmed


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (BYTES, {"layout": {"dim": [{"label": "a", "size": 2, "stride": 3}], "data_offset": 1},
                 "data": "AP8="}),
        ("std_msgs/String", {"data": "ä\n\"\\"}),
        ("std_msgs/Bool", {"data": True}),
        ("std_msgs/Int64", {"data": -(1 << 63)}),
        ("std_msgs/Float64", {"data": 0.1}),
        ("std_msgs/Float64", {"data": None}),
        ("std_msgs/Header", {"seq": 7, "stamp": {"secs": 1, "nsecs": 2}, "frame_id": "f"}),
        ("std_msgs/Duration", {"data": {"secs": -1, "nsecs": 5}}),
        ("std_msgs/Int16MultiArray", {"layout": {"dim": [], "data_offset": 0}, "data": [-1, 2]}),
    ],
)  # fmt: skip
def test_a_message_passes_the_bridge_unchanged(
    services: Services, kind: str, message: dict[str, Any]
) -> None:
    with contextlib.closing(WebSocketPeer(services.websocket)) as peer:
        topic = f"/{kind}"  # the services and their topics are shared by the tests of a module
        opened(peer, topic, kind)
        peer.send(op="publish", topic=topic, msg=message)
        assert peer.receive() == {"op": "publish", "topic": topic, "msg": message}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('{"op": "publ', ["found '{\"op\": \"publ'", "allowed: an object in JSON"]),
        ("[1]", ["allowed: an object in JSON"]),
        ("[" * 60_000, ["allowed: an object in JSON"]),
        ('{"op": "fly"}', ["op: found 'fly'", "allowed: advertise, unadvertise, publish"]),
        ('{"op": "set_level", "level": 3}', ["level: found 3", "none, error, warning, info"]),
        ('{"op": "advertise", "topic": "/t"}', ["type: found None", "allowed: a string"]),
        ('{"op": "advertise", "topic": "/t", "type": "a/B"}', ["type: found 'a/B'"]),
        ('{"op": "advertise", "topic": "/t", "type": "B"}', ["type: found 'B'"]),
        ('{"op": "publish", "topic": "/t"}', ["found '/t'", "not advertised", "/s, /f, /b"]),
        ('{"op": "unsubscribe", "topic": "/t"}', ["found '/t'", "not subscribed"]),
        ('{"op": "subscribe", "topic": "/t", "type": "std_msgs/Bool", "throttle_rate": 5}',
         ["throttle_rate: found 5", "supports only 0"]),
        ('{"op": "subscribe", "topic": "/t", "type": "std_msgs/Bool", "compression": ["cbor"]}',
         ["compression: found ['cbor']", "allowed: none"]),
        ('{"op": "subscribe", "topic": "/t", "type": "std_msgs/Bool", "compression": {}}',
         ["compression: found {}"]),
        ('{"op": "advertise", "topic": "/b", "type": "std_msgs/Bool"}',
         ["type: found 'std_msgs/Bool'", f"allowed for /b: '{BYTES}'"]),
        ('{"op": "publish", "topic": "/b", "msg": {"date": ""}}',
         ["msg: unknown field 'date'", f"{BYTES} has layout, data"]),
        ('{"op": "publish", "topic": "/b", "msg": {"data": "AP8"}}',
         ["msg.data: found 'AP8'", "allowed: bytes in base64"]),
        ('{"op": "publish", "topic": "/b", "msg": {"data": [256]}}', ["msg.data: found [256]"]),
        ('{"op": "publish", "topic": "/b", "msg": {"layout": {"dim": [{"size": true}]}}}',
         ["msg.layout.dim[0].size: found True", "allowed: uint32"]),
        ('{"op": "publish", "topic": "/b", "msg": {"layout": {"data_offset": 4294967296}}}',
         ["msg: field layout.data_offset exceeds", "[uint32]"]),
        ('{"op": "publish", "topic": "/s", "msg": {"data": "\\ud800"}}', ["msg:", "surrogates"]),
        ('{"op": "publish", "topic": "/f", "msg": {"data": 1e300}}', ["msg:", "too large"]),
        ('{"op": "publish", "topic": "/b", "msg": 1}', ["msg: found 1", "an object of type"]),
    ],
)  # fmt: skip
def test_a_rejected_operation_gets_an_error_and_the_bridge_continues(
    services: Services, text: str, parts: list[str]
) -> None:
    with contextlib.closing(WebSocketPeer(services.websocket)) as peer:
        opened(peer, "/s", "std_msgs/String")
        opened(peer, "/f", "std_msgs/Float32")
        opened(peer, "/b", BYTES)
        peer.send_text(text)
        status = peer.receive()
        assert (status["op"], status["level"]) == ("status", "error"), status
        for part in parts:
            assert part in status["msg"]
        peer.send(op="publish", topic="/b", msg={"data": "AA=="})
        assert peer.receive()["msg"]["data"] == "AA=="


AWAIT_CONNECTION = "/rosbridge/await_connection"


def test_a_service_answers_when_the_topic_has_another_end(services: Services) -> None:
    """For clients whose libraries hide statuses, and which therefore keep the level error."""
    with (
        contextlib.closing(WebSocketPeer(services.websocket)) as caller,
        contextlib.closing(WebSocketPeer(services.websocket)) as other,
    ):
        caller.send(op="advertise", topic="/awaited", type=BYTES, latch=False, queue_size=100)
        call = {"op": "call_service", "service": AWAIT_CONNECTION, "args": {"topic": "/awaited"}}
        caller.send(**call, id="waits")
        caller.send(op="advertise", topic="/awaited", type="a/B")  # is answered at once
        assert caller.receive()["op"] == "status"
        other.send(op="subscribe", topic="/awaited", type=BYTES, throttle_rate=0, queue_length=0)
        response = {"op": "service_response", "service": AWAIT_CONNECTION, "id": "waits"}
        assert caller.receive() == {**response, "values": {"connected": True}, "result": True}


@pytest.mark.parametrize(
    ("service", "arguments", "parts"),
    [
        ("/rosapi/topics", {}, ["service: found '/rosapi/topics'", f"allowed: {AWAIT_CONNECTION}"]),
        (AWAIT_CONNECTION, [], ["args: found []", '{"topic": …}']),
        (AWAIT_CONNECTION, {}, ["topic: found None", "allowed: a string"]),
        (AWAIT_CONNECTION, {"topic": "/t"}, ["args.topic: found '/t'", "allowed: /s"]),
        (AWAIT_CONNECTION, {"topic": "/r"}, ["advertise: type: found 'a/B'"]),
    ],
)
def test_a_rejected_call_of_a_service_gets_a_response_with_the_reason(
    services: Services, service: str, arguments: Any, parts: list[str]
) -> None:
    with contextlib.closing(WebSocketPeer(services.websocket)) as peer:
        opened(peer, "/s", "std_msgs/String")
        peer.send(op="advertise", topic="/r", type="a/B")
        assert peer.receive()["op"] == "status"
        peer.send(op="call_service", service=service, args=arguments, id="call")
        response = peer.receive()
        assert (response["op"], response["id"]) == ("service_response", "call")
        assert response["result"] is False
        for part in parts:
            assert part in response["values"]


def test_half_a_frame_ends_only_its_own_connection(services: Services) -> None:
    with contextlib.closing(WebSocketPeer(services.websocket)) as other:
        opened(other, "/kept", BYTES)
        broken = WebSocketPeer(services.websocket)
        opened(broken, "/kept", BYTES)
        whole = frame(b'{"op": "publish", "topic": "/kept", "msg": {"data": "AA=="}}')
        broken.socket.sendall(whole[: len(whole) // 2])
        broken.close()
        other.send(op="publish", topic="/kept", msg={"data": "AQ=="})
        assert other.receive()["msg"]["data"] == "AQ=="


def test_a_client_with_the_level_none_gets_no_status(services: Services) -> None:
    with contextlib.closing(WebSocketPeer(services.websocket)) as peer:
        opened(peer, "/b", BYTES)
        peer.send(op="set_level", level="none")
        peer.send(op="fly")
        peer.send(op="publish", topic="/b", msg={"data": "AA=="})
        assert peer.receive()["op"] == "publish"


def test_a_client_that_does_not_read_loses_the_oldest_messages_and_delays_no_other(
    services: Services,
) -> None:
    """The sent bytes exceed the sockets' buffers, and the messages exceed the queue."""
    with (
        contextlib.closing(WebSocketPeer(services.websocket)) as idle,
        contextlib.closing(WebSocketPeer(services.websocket)) as peer,
    ):
        opened(idle, "/busy", "std_msgs/String")
        opened(peer, "/busy", "std_msgs/String")
        count, filler = 3_000, "x" * 20_000
        for number in range(count):
            peer.send(op="publish", topic="/busy", msg={"data": f"{number} {filler}"})
            received = peer.receive()["msg"]["data"]
            assert received.startswith(f"{number} ")
        numbers = [int(idle.receive()["msg"]["data"].split()[0])]
        while numbers[-1] < count - 1:
            numbers.append(int(idle.receive()["msg"]["data"].split()[0]))
        assert numbers == sorted(numbers)
        assert len(numbers) < count


@pytest.mark.matrix
def test_a_client_that_does_not_read_for_long_keeps_its_connection(services: Services) -> None:
    """The library's defaults would cut it off after UNREAD_S, so that a slow machine loses it."""
    with contextlib.closing(WebSocketPeer(services.websocket)) as peer:
        opened(peer, "/unread", "std_msgs/String")
        time.sleep(UNREAD_S + 5)
        peer.send(op="publish", topic="/unread", msg={"data": "still there"})
        assert peer.receive()["msg"]["data"] == "still there"


def test_a_page_of_the_web_cannot_connect(services: Services) -> None:
    host, _, port = services.websocket.rpartition(":")
    request = HANDSHAKE.replace("Host: bridge", "Host: bridge\r\nOrigin: http://example.org")
    with socket.create_connection((host, int(port)), timeout=HANG_S) as connection:
        connection.sendall(request.encode())
        assert connection.recv(64).startswith(b"HTTP/1.1 403 ")


def test_topics_of_a_bridge_are_bounded(services: Services) -> None:
    """This is the last test of the module, because a topic stays for seconds."""
    with contextlib.closing(WebSocketPeer(services.websocket)) as peer:
        peer.send(op="set_level", level="error")
        for number in range(TOPICS_MAX + 1):
            peer.send(op="advertise", topic=f"/many/t{number}", type="std_msgs/Bool")
        status = peer.receive()
        assert status["level"] == "error" and f"allowed: {TOPICS_MAX}" in status["msg"]
