"""A connection to the broker: paho's network thread, READY, and loss of the broker."""

from __future__ import annotations

import socket
import ssl
import threading
from typing import Any

import paho.mqtt.client as mqtt
from wattwire_kit import BadSpec, Kit, MiddlewareFailed, SendFailed

BROKER_VERSION = "$SYS/broker/version"
DELIVERY = ("at_most_once", "at_least_once", "exactly_once")


class Connection:
    """An open connection. The constructor raises MiddlewareFailed if the broker rejects it."""

    def __init__(self, kit: Kit) -> None:
        self.kit = kit
        self.qos: int = kit.setting("qos")
        self.is_secured: bool = kit.setting("security") == "on"
        self.prefix = f"wattwire/{kit.spec['run']}"
        self.lost = threading.Event()
        self._answered = threading.Event()
        self._refusal = ""
        self._broker_version = "unknown"
        self._granted: dict[int, str] = {}
        name = f"wattwire-{kit.spec['run']}-{kit.spec['node']}"
        self.client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2, client_id=name, protocol=mqtt.MQTTv5
        )
        self.client.on_socket_open = self._on_socket_open
        self.client.on_connect = self._on_connect
        self.client.on_disconnect = self._on_disconnect
        self.client.on_subscribe = self._on_subscribe
        self._connect()

    def _connect(self) -> None:
        host, port = self._endpoint()
        try:
            if self.is_secured:
                self._use_tls()
            self.client.connect(host, port)
        except ssl.SSLError as error:
            raise MiddlewareFailed(f"the broker at {host}:{port}: {error}") from error
        except OSError as error:
            raise MiddlewareFailed(
                f"no broker at {host}:{port} ({error}); is mosquitto running?"
            ) from error
        self.client.loop_start()
        self._await(self._answered, "CONNACK")
        if self._refusal:
            raise MiddlewareFailed(f"the broker at {host}:{port} refused: {self._refusal}")
        self._ask_broker_version()

    def _use_tls(self) -> None:
        """Show the node's certificate, if any, and accept only the run's authority (C-43)."""
        spec = self.kit.spec
        self.client.tls_set(
            spec["tls.authority"], spec["tls.certificate"] or None, spec["tls.key"] or None
        )

    def _endpoint(self) -> tuple[str, int]:
        endpoints = self.kit.spec["peers.endpoints"]
        host, _, port = endpoints[0].rpartition(":") if endpoints else ("", "", "")
        if not host or not port.isdecimal():
            raise BadSpec(
                "peers.endpoints", endpoints, "the broker as HOST:PORT, first in the list"
            )
        return host, int(port)

    def _await(self, event: threading.Event, what: str) -> None:
        timeout_ms = self.kit.spec["ready_timeout_ms"]
        if not event.wait(timeout_ms / 1000):
            raise MiddlewareFailed(f"no {what} from the broker within {timeout_ms} ms")
        if self.lost.is_set():
            why = "; if it refused the node's certificate, its log says why"
            why = why if self.is_secured else ""
            raise MiddlewareFailed(f"the broker ended the connection before its {what}{why}")

    # --- paho's callbacks, on its network thread ----------------------------------------------

    def _on_socket_open(self, _client: Any, _userdata: Any, sock: socket.socket) -> None:
        if self.kit.setting("tcp_nodelay"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _on_connect(self, _c: Any, _u: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        self._refusal = str(reason) if reason.is_failure else ""
        self._answered.set()

    def _on_disconnect(self, _c: Any, _u: Any, _flags: Any, _reason: Any, _p: Any) -> None:
        self.lost.set()
        self._answered.set()

    def _on_subscribe(self, _c: Any, _u: Any, mid: int, reasons: Any, _properties: Any) -> None:
        self._granted[mid] = str(reasons[0])
        self._answered.set()

    # --- opening ------------------------------------------------------------------------------

    def subscribe(self, topic: str, on_message: mqtt.CallbackOnMessage) -> str:
        """Subscribe and wait for the SUBACK, after which all publications arrive.

        A role has only one topic, so paho does not have to search for the topic's callback.
        """
        self.client.on_message = on_message
        return self._subscribe(topic)

    def _subscribe(self, topic: str) -> str:
        self._answered.clear()
        _, mid = self.client.subscribe(topic, qos=self.qos)
        self._await(self._answered, "SUBACK")
        granted = self._granted.get(mid, "no answer")
        if not granted.startswith("Granted QoS"):
            raise MiddlewareFailed(f"the broker refused the subscription of {topic}: {granted}")
        return granted

    def _ask_broker_version(self) -> None:
        """Read the broker's version, a retained message of mosquitto; others may have none."""
        answered = threading.Event()

        def on_version(_client: Any, _userdata: Any, message: mqtt.MQTTMessage) -> None:
            self._broker_version = message.payload.decode("utf-8", "replace")
            answered.set()

        self.client.message_callback_add(BROKER_VERSION, on_version)
        self._subscribe(BROKER_VERSION)
        answered.wait(0.5)
        self.client.unsubscribe(BROKER_VERSION)
        self.client.message_callback_remove(BROKER_VERSION)

    def ready(self, discovery_ns: int | None = None, granted: str = "") -> None:
        sock = self.client.socket()
        if sock is None:
            raise MiddlewareFailed("the broker closed the connection before READY")
        nodelay = bool(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        self.kit.ready(
            matched=None,
            discovery_ns=discovery_ns,
            library=("paho-mqtt", mqtt_version(), f"broker {self._broker_version}"),
            effective={
                "protocol": "MQTT 5",
                "qos": self.qos,
                "granted": granted,
                "tcp_nodelay": nodelay,
                "broker": self._broker_version,
                "inflight_messages_max": self.client.max_inflight_messages,
                "transport": "tcp",
                **self._security(sock),
            },
            guarantee=(DELIVERY[self.qos], "per_sender", "drop_newest"),
        )

    def _security(self, sock: socket.socket) -> dict[str, str]:
        """Return whether the connection is secured, its protocol and its cipher."""
        if not isinstance(sock, ssl.SSLSocket):
            return {"security": "off"}
        cipher = sock.cipher()
        assert cipher is not None  # the handshake is complete
        return {
            "security": "on",
            "security_protocol": str(sock.version()),
            "security_cipher": cipher[0],
        }

    # --- window -------------------------------------------------------------------------------

    def publish(self, topic: str, payload: Any, properties: Any = None) -> mqtt.MQTTMessageInfo:
        info = self.client.publish(topic, payload, qos=self.qos, properties=properties)
        if info.rc == mqtt.MQTT_ERR_NO_CONN:
            raise MiddlewareFailed("the broker was lost")
        if info.rc != mqtt.MQTT_ERR_SUCCESS:
            raise SendFailed(mqtt.error_string(info.rc))
        return info

    def watch(self, timeout_s: float) -> None:
        """Wait, and raise MiddlewareFailed if the broker is lost."""
        if self.lost.wait(timeout_s):
            raise MiddlewareFailed("the broker was lost")

    def close(self, last: mqtt.MQTTMessageInfo | None = None) -> None:
        """Disconnect when the last message is sent (QoS 0) or acknowledged, or at linger_ms."""
        if last is not None:
            last.wait_for_publish(self.kit.spec["linger_ms"] / 1000)
        self.client.disconnect()
        self.client.loop_stop()


def mqtt_version() -> str:
    from importlib.metadata import version

    return version("paho-mqtt")
