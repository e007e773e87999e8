"""A client of the bridge: connection, topics, READY, and loss of the bridge."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from clients import bridge_endpoint, data_in_json, effective, message_type
from decoding import COMPRESSIONS, Decoder
from transports import DATAGRAM_BYTES_MAX, TRANSPORTS, Lost
from wattwire_kit import Kit, MiddlewareFailed, Unsupported


class Session:
    """A connected client. The constructor raises MiddlewareFailed if no bridge answers."""

    def __init__(self, kit: Kit) -> None:
        self.kit = kit
        self.type = message_type(kit)
        self.begin_ns = kit.now()
        self._prefix = f"/wattwire_{kit.spec['run']}"
        self._topic = ""
        self._subscribed = ""
        self._on_message: Callable[[Any], object] = lambda _data: None
        self._unconfirmed: set[str] = set()
        self._server: str = kit.setting("server")
        self._encoding: str = kit.setting("encoding")
        self._decoder = Decoder(self._encoding, kit.text)
        host, port = bridge_endpoint(kit)
        self._endpoint = f"{self._server} {host}:{port}"
        try:
            timeout_s = kit.spec["ready_timeout_ms"] / 1e3
            self._transport = TRANSPORTS[self._server](host, port, timeout_s)
            self._operate("set_level", level="info")
        except (Lost, MiddlewareFailed) as error:
            raise MiddlewareFailed(
                f"no bridge at {self._endpoint} ({error}); is it running?"
            ) from error

    def _operate(self, operation: str, **fields: Any) -> None:
        try:
            self._transport.send(json.dumps({"op": operation, **fields}))
        except Lost as error:
            raise MiddlewareFailed(f"the bridge was lost: {error}") from error

    # --- topics -------------------------------------------------------------------------------

    def publish_on(self, topic: str, latch: bool = False) -> None:
        self._topic = f"{self._prefix}/{topic}"
        self._check_length()
        self._open("advertise", self._topic, latch=latch)

    def subscribe(self, topic: str, on_message: Callable[[Any], object]) -> None:
        self._on_message = on_message
        self._subscribed = f"{self._prefix}/{topic}"
        compression = COMPRESSIONS[self._encoding]
        self._open("subscribe", self._subscribed, compression=compression)

    def _open(self, operation: str, topic: str, **options: Any) -> None:
        operation_id = f"{operation}:{topic}"
        self._unconfirmed.add(operation_id)
        self._operate(operation, id=operation_id, topic=topic, type=self.type, **options)

    def _check_length(self) -> None:
        """Raise Unsupported if a datagram cannot carry a message with a payload of this run."""
        payload_bytes = self.kit.spec["payload.bytes"]
        fields = {"op": "publish", **self._publication(b"A" * payload_bytes)}
        longer_bytes = len(json.dumps(fields)) - DATAGRAM_BYTES_MAX
        if self._server != "udp" or longer_bytes <= 0:
            return
        ratio = 1 if self.kit.text else 3 / 4
        raise Unsupported(
            f"payload.bytes = {payload_bytes} with settings.server = 'udp': the message has "
            f"{DATAGRAM_BYTES_MAX + longer_bytes} bytes in JSON, and a datagram has at most "
            f"{DATAGRAM_BYTES_MAX}. Use 'tcp' or 'websocket', or at most "
            f"{payload_bytes - int(longer_bytes * ratio) - 3} bytes"
        )

    def _publication(self, data: Any) -> dict[str, Any]:
        return {"topic": self._topic, "msg": {"data": data_in_json(self.kit, data)}}

    def publish(self, data: Any) -> None:
        self._operate("publish", **self._publication(data))

    def poll(self, timeout_s: float) -> None:
        """Wait for one message of the bridge, and handle it."""
        try:
            raw = self._transport.receive(timeout_s)
        except Lost as error:
            raise MiddlewareFailed(f"the bridge was lost: {error}") from error
        if raw is None:
            return
        fields = self._decoder.fields(raw)
        if fields["op"] == "publish":
            self._on_message(self._decoder.payload(fields))
        elif fields.get("level") == "error":
            raise MiddlewareFailed(f"the bridge reports: {fields.get('msg')}")
        else:
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
            library=("websockets", version("websockets"), f"cbor2 {version('cbor2')}"),
            effective=effective(self.kit, self._endpoint),
            guarantee=(
                "best_effort",
                "none" if self._server == "udp" else "per_sender",
                "drop_oldest",
            ),
        )

    def close(self) -> None:
        """Let the bridge read and publish what was sent, which it does not confirm, and leave.

        UDP does not show the bridge that a client ends, so the client ends its topics.
        """
        if self._topic:
            time.sleep(self.kit.spec["quiet_ms"] / 1e3)
        if self._server == "udp" and self._topic:
            self._operate("unadvertise", topic=self._topic)
        if self._server == "udp" and self._subscribed:
            self._operate("unsubscribe", topic=self._subscribed)
        self._transport.close()
