"""Relay of a pipeline: it publishes each payload, unchanged, from the callback."""

from __future__ import annotations

from typing import Any

import paho.mqtt.client as mqtt
from connection import Connection
from wattwire_kit import Kit, SendFailed


def relay(kit: Kit) -> None:
    connection = Connection(kit)
    next_topic = f"{connection.prefix}/{kit.sending_topic()}"
    last: mqtt.MQTTMessageInfo | None = None

    def on_message(_client: Any, _userdata: Any, arrived: mqtt.MQTTMessage) -> None:
        nonlocal last
        message = kit.relay(arrived.payload)
        if message is None:
            return
        try:
            last = connection.publish(next_topic, arrived.payload)
        except SendFailed:
            kit.relay_failed(message)
        else:
            kit.relayed(message)

    begin_ns = kit.now()
    topic = f"{connection.prefix}/{kit.receiving_topic()}"
    granted = connection.subscribe(topic, on_message)
    connection.ready(kit.now() - begin_ns, granted)
    kit.poll(connection.watch)
    connection.close(last)
