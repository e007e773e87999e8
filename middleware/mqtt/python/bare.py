"""A bare MQTT 5 request and response with paho: `pong BROKER` or `ping BROKER BYTES COUNT`.

Pong prints the endpoint for ping and answers until it is killed; ping prints the median round trip
in ns. With BARE_TLS = "AUTHORITY CERTIFICATE KEY", paths of PEM files, both use TLS.
"""

from __future__ import annotations

import os
import queue
import sys
import time

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

TIMEOUT_S = 2.0


def connected(broker: str, topic: str, on_message: mqtt.CallbackOnMessage) -> mqtt.Client:
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
    granted: queue.SimpleQueue[bool] = queue.SimpleQueue()
    client.on_message = on_message
    client.on_connect = lambda *_: client.subscribe(topic)
    client.on_subscribe = lambda *_: granted.put(True)
    if credentials := os.environ.get("BARE_TLS", "").split():
        client.tls_set(*credentials)
    host, _, port = broker.rpartition(":")
    client.connect(host, int(port))
    client.loop_start()
    granted.get(timeout=10)
    return client


def pong(broker: str) -> None:
    def on_request(client: mqtt.Client, _: object, request: mqtt.MQTTMessage) -> None:
        properties = Properties(PacketTypes.PUBLISH)
        properties.CorrelationData = request.properties.CorrelationData
        client.publish(request.properties.ResponseTopic, request.payload, properties=properties)

    connected(broker, "bare/request", on_request)
    print(broker, flush=True)
    sys.stdin.read()


def ping(broker: str, length: int, count: int) -> None:
    replies: queue.SimpleQueue[tuple[bytes, bytes]] = queue.SimpleQueue()

    def on_reply(_client: object, _data: object, reply: mqtt.MQTTMessage) -> None:
        replies.put((reply.properties.CorrelationData, reply.payload))

    client = connected(broker, "bare/reply", on_reply)
    properties = Properties(PacketTypes.PUBLISH)
    properties.ResponseTopic = "bare/reply"
    times = []
    payload = bytes(length)
    for number in range(count):
        properties.CorrelationData = number.to_bytes(8, "little")
        begin_ns = time.monotonic_ns()
        client.publish("bare/request", payload, properties=properties)
        if replies.get(timeout=TIMEOUT_S) != (properties.CorrelationData, payload):
            sys.exit(f"another reply than that to call {number}")
        times.append(time.monotonic_ns() - begin_ns)
    print(sorted(times)[len(times) // 2])
    client.disconnect()


if __name__ == "__main__":
    role, broker, *rest = sys.argv[1:]
    {"pong": pong, "ping": ping}[role](broker, *map(int, rest))
