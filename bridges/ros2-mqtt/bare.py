"""The bare peer of this bridge: rclpy and paho-mqtt, joined by their callbacks."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import paho.mqtt.client as mqtt
from bare_forwarding import main
from wattwire_kit import Kit, MiddlewareFailed

QOS = 1


class MqttLibrary:
    """A client of the broker with QoS 1, as for a reliable topic of ROS."""

    def __init__(self, kit: Kit, is_entry: bool) -> None:
        self._timeout_s = kit.spec["ready_timeout_ms"] / 1000
        self._answered = threading.Event()
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
        client.max_inflight_messages_set(kit.setting("depth"))
        client.on_connect = client.on_subscribe = lambda *_: self._answered.set()
        host, _, port = kit.spec["peers.endpoints"][0].rpartition(":")
        client.connect(host, int(port))
        client.loop_start()
        self._await("CONNACK")
        self._client, self._topic = client, f"bare/{kit.spec['run']}"
        if is_entry:
            self._topic += f"/{kit.sending_topic()}"
            self.send = functools.partial(client.publish, self._topic, qos=QOS)
        else:
            self._topic += f"/{kit.receiving_topic()}"

    def _await(self, answer: str) -> None:
        if not self._answered.wait(self._timeout_s):
            raise MiddlewareFailed(f"no {answer} from the broker within {self._timeout_s:g} s")
        self._answered.clear()

    def subscribe(self, on_message: Callable[[bytes], Any]) -> None:
        self._client.on_message = lambda _client, _userdata, message: on_message(message.payload)
        self._client.subscribe(self._topic, qos=QOS)
        self._await("SUBACK")

    def matched(self) -> int:
        return 1  # the broker; the exit is ready only after it has subscribed

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


if __name__ == "__main__":
    main(MqttLibrary)
