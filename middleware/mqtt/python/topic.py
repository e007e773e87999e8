"""Topic pattern, source and sink: one MQTT topic, its payload is the message."""

from __future__ import annotations

from typing import Any

import paho.mqtt.client as mqtt
from connection import Connection
from wattwire_kit import Kit


def publish(kit: Kit) -> None:
    connection = Connection(kit)
    topic = f"{connection.prefix}/{kit.sending_topic()}"
    last: mqtt.MQTTMessageInfo | None = None

    def send(buffer: bytearray) -> None:
        nonlocal last
        # paho keeps a reference until the message is acknowledged, so it needs a copy.
        payload = buffer.decode("ascii") if kit.text else bytes(buffer)
        last = connection.publish(topic, payload)

    connection.ready()
    kit.send_all(send)
    connection.close(last)


def subscribe(kit: Kit) -> None:
    connection = Connection(kit)

    def on_message(_client: Any, _userdata: Any, message: mqtt.MQTTMessage) -> None:
        kit.received(message.payload)

    begin_ns = kit.now()
    topic = f"{connection.prefix}/{kit.receiving_topic()}"
    granted = connection.subscribe(topic, on_message)
    connection.ready(kit.now() - begin_ns, granted)
    kit.poll(connection.watch)
    connection.close()
