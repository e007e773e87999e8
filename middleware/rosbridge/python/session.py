"""A client of the bridge: connection, topics, READY, and loss of the bridge."""

from __future__ import annotations

import base64
import binascii
import json
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from wattwire_kit import BadSpec, Kit, MiddlewareFailed
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import connect

MESSAGE_BYTES_MAX = 1 << 24
"""Longest message of the bridge. The library's default of 1 MiB is too short for large payloads."""


class Session:
    """A connected client. The constructor raises MiddlewareFailed if no bridge answers."""

    def __init__(self, kit: Kit) -> None:
        self.kit = kit
        self.type = "std_msgs/String" if kit.text else "std_msgs/UInt8MultiArray"
        self.begin_ns = kit.now()
        self._prefix = f"/wattwire_{kit.spec['run']}"
        self._topic = ""
        self._on_message: Callable[[Any], object] = lambda _data: None
        self._unconfirmed: set[str] = set()
        self._endpoint = self._bridge()
        timeout_s = kit.spec["ready_timeout_ms"] / 1e3
        try:
            self._connection = connect(
                f"ws://{self._endpoint}", open_timeout=timeout_s, compression=None,
                max_size=MESSAGE_BYTES_MAX,
            )  # fmt: skip
        except (OSError, InvalidHandshake, EOFError) as error:
            raise MiddlewareFailed(
                f"no bridge at ws://{self._endpoint} ({error}); is it running?"
            ) from error
        self._operate("set_level", level="info")

    def _bridge(self) -> str:
        endpoints = self.kit.spec["peers.endpoints"]
        host, _, port = endpoints[1].rpartition(":") if len(endpoints) > 1 else ("", "", "")
        if not host or not port.isdecimal() or int(port) > 65_535:
            allowed = "the master and the bridge as HOST:PORT, first in the list"
            raise BadSpec("peers.endpoints", endpoints, allowed)
        return f"{host}:{port}"

    def _operate(self, operation: str, **fields: Any) -> None:
        try:
            self._connection.send(json.dumps({"op": operation, **fields}))
        except ConnectionClosed as error:
            raise MiddlewareFailed(f"the bridge was lost: {error}") from error

    # --- topics -------------------------------------------------------------------------------

    def publish_on(self, topic: str, latch: bool = False) -> None:
        self._topic = f"{self._prefix}/{topic}"
        self._open("advertise", self._topic, latch=latch)

    def subscribe(self, topic: str, on_message: Callable[[Any], object]) -> None:
        self._on_message = on_message
        self._open("subscribe", f"{self._prefix}/{topic}")

    def _open(self, operation: str, topic: str, **options: Any) -> None:
        operation_id = f"{operation}:{topic}"
        self._unconfirmed.add(operation_id)
        self._operate(operation, id=operation_id, topic=topic, type=self.type, **options)

    def publish(self, data: Any) -> None:
        """Publish a payload: a text as it is, bytes in base64."""
        if not self.kit.text:
            value = base64.b64encode(data).decode("ascii")
        else:
            value = data if isinstance(data, str) else data.decode("utf-8", "replace")
        self._operate("publish", topic=self._topic, msg={"data": value})

    def poll(self, timeout_s: float) -> None:
        """Wait for one message of the bridge, and handle it."""
        try:
            raw = self._connection.recv(timeout_s)
        except TimeoutError:
            return
        except ConnectionClosed as error:
            raise MiddlewareFailed(f"the bridge was lost: {error}") from error
        try:
            fields = json.loads(raw)
            if fields["op"] == "publish":
                self._on_message(self._payload(fields["msg"]["data"]))
                return
        except (ValueError, TypeError, KeyError) as error:
            raise MiddlewareFailed(
                f"the bridge sent {raw!r:.80}, which is no message of the protocol ({error!r})"
            ) from error
        self._note_status(fields)

    def _payload(self, data: str) -> str | bytes:
        if self.kit.text:
            return data
        try:
            return base64.b64decode(data, validate=True)
        except binascii.Error as error:
            raise ValueError(f"msg.data is not in base64: {error}") from error

    def _note_status(self, fields: dict[str, Any]) -> None:
        if fields.get("level") == "error":
            raise MiddlewareFailed(f"the bridge reports: {fields.get('msg')}")
        self._unconfirmed.discard(fields.get("id", ""))

    # --- READY and the end --------------------------------------------------------------------

    def await_connected(self) -> int:
        """Wait until the bridge has confirmed the topics; return the time since the constructor.

        The bridge confirms that a topic has another end, but not which. The time is in ns.
        """
        count = self.kit.spec["peers.count"]
        self.kit.await_peers(lambda: 0 if self._unconfirmed else count, self.poll)
        return self.kit.now() - self.begin_ns

    def ready(self, discovery_ns: int) -> None:
        self.kit.ready(
            matched=None,
            discovery_ns=discovery_ns,
            library=("websockets", version("websockets"), self.type),
            effective={
                "wait": self.kit.setting("wait"),
                "tcp_nodelay": self.kit.setting("tcp_nodelay"),
                "queue_size": self.kit.setting("queue_size"),
                "type": self.type,
                "protocol": "rosbridge 2, JSON",
                "transport": "websocket",
                "bridge": self._endpoint,
            },
            guarantee=("best_effort", "per_sender", "drop_oldest"),
        )

    def close(self) -> None:
        """Let the bridge read and publish what was sent, which it does not confirm, and leave."""
        if self._topic:
            time.sleep(self.kit.spec["quiet_ms"] / 1e3)
        self._connection.close()
