"""The MQTT end of a bridge: a connection to the broker, for one channel."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import paho.mqtt.client as mqtt
from wattwire_kit import BadSpec, Kit, MiddlewareFailed, SendFailed


class OuterEnd:
    """A connection to the broker. A reliable ROS topic has QoS 1, a best-effort topic QoS 0.

    The entry learns that the exit has subscribed from a retained message of the exit.
    """

    def __init__(self, kit: Kit, is_entry: bool, is_reliable: bool) -> None:
        self.kit, self._is_entry, self.qos = kit, is_entry, int(is_reliable)
        self._answered, self._lost = threading.Event(), threading.Event()
        self._is_other_ready = threading.Event()
        self._on_message: Callable[[bytes], None] = lambda _payload: None
        self._interrupt: Callable[[], object] = lambda: None
        self._refusal, self._topic = "", ""
        self._last: mqtt.MQTTMessageInfo | None = None
        self.client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2,
            client_id=f"wattwire-{kit.spec['run']}-{kit.spec['node']}",
            protocol=mqtt.MQTTv5,
        )
        self.client.max_inflight_messages_set(kit.setting("depth"))
        self.client.on_socket_open = self._opened
        self.client.on_connect = self._connected
        self.client.on_disconnect = self._disconnected
        self.client.on_subscribe = lambda *_: self._answered.set()
        self.client.on_message = self._arrived
        self._connect()

    def _connect(self) -> None:
        endpoints = self.kit.spec["peers.endpoints"]
        host, _, port = endpoints[0].rpartition(":") if endpoints else ("", "", "")
        if not port.isdecimal():
            raise BadSpec("peers.endpoints", endpoints, "the broker as HOST:PORT")
        try:
            if self.kit.setting("outer_security") == "on":
                keys = ("tls.authority", "tls.certificate", "tls.key")
                self.client.tls_set(*(self.kit.spec[key] for key in keys))
            self.client.connect(host, int(port))
        except OSError as error:
            raise MiddlewareFailed(f"no broker at {host}:{port} ({error})") from error
        self.client.loop_start()
        self._await("CONNACK")
        if self._refusal:
            raise MiddlewareFailed(f"the broker at {host}:{port} refused: {self._refusal}")

    def _opened(self, _client: Any, _userdata: Any, connection: socket.socket) -> None:
        if self.kit.setting("outer_tcp_nodelay"):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _connected(self, _c: Any, _u: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        self._refusal = str(reason) if reason.is_failure else ""
        self._answered.set()

    def _disconnected(self, *_: Any) -> None:
        self._lost.set()
        self._answered.set()
        self._interrupt()

    def _await(self, what: str) -> None:
        timeout_ms = self.kit.spec["ready_timeout_ms"]
        if not self._answered.wait(timeout_ms / 1000) or self._lost.is_set():
            raise MiddlewareFailed(f"no {what} from the broker within {timeout_ms} ms")
        self._answered.clear()

    def _name(self, topic: str) -> str:
        return f"wattwire/{self.kit.spec['run']}/{topic}"

    def _arrived(self, _client: Any, _userdata: Any, message: mqtt.MQTTMessage) -> None:
        if self._is_entry:
            self._is_other_ready.set()
        else:
            self._on_message(message.payload)

    def advertise(self) -> None:
        self._topic = self._name(self.kit.sending_topic())
        self.client.subscribe(f"{self._topic}/live", qos=1)
        self._await("SUBACK")

    def subscribe(self, on_message: Callable[[bytes], None]) -> None:
        self._on_message = on_message
        topic = self._name(self.kit.receiving_topic())
        self.client.subscribe(topic, qos=self.qos)
        self._await("SUBACK")
        self.client.publish(f"{topic}/live", b"ready", qos=1, retain=True)
        self._is_other_ready.set()  # the broker, the only peer that this end knows

    def publish(self, serialized: bytes) -> None:
        self._last = self.client.publish(self._topic, serialized, qos=self.qos)
        if self._last.rc == mqtt.MQTT_ERR_NO_CONN:
            raise MiddlewareFailed("the broker was lost")
        if self._last.rc != mqtt.MQTT_ERR_SUCCESS:
            raise SendFailed(mqtt.error_string(self._last.rc))

    def matched(self) -> int:
        return int(self._is_other_ready.is_set())

    def effective(self) -> dict[str, Any]:
        return {
            "outer": "mqtt",
            "outer_library": f"paho-mqtt {version('paho-mqtt')}",
            "outer_qos": self.qos,
            "outer_inflight_messages_max": self.client.max_inflight_messages,
        }

    def watch(self, interrupt: Callable[[], object]) -> None:
        """Call `interrupt` from another thread when the broker is lost."""
        self._interrupt = interrupt
        if self._lost.is_set():
            interrupt()

    def check(self) -> None:
        """Raise MiddlewareFailed if the broker is lost."""
        if self._lost.is_set():
            raise MiddlewareFailed("the broker was lost")

    def close(self) -> None:
        if self._last is not None:
            self._last.wait_for_publish(self.kit.spec["linger_ms"] / 1000)
        self.client.disconnect()
        self.client.loop_stop()
