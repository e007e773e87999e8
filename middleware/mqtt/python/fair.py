"""The bare MQTT request and response of bare.py with the contract's work; same command line."""

from __future__ import annotations

import queue
import sys
from time import monotonic_ns

import paho.mqtt.client as mqtt
from bare import TIMEOUT_S, connected
from contract_work import UNKNOWN_NS, Work, watch_input
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties


def pong(broker: str) -> None:
    work = Work()

    def on_request(client: mqtt.Client, _: object, request: mqtt.MQTTMessage) -> None:
        begin_ns = monotonic_ns()
        seq = work.checked(request.payload)
        properties = Properties(PacketTypes.PUBLISH)
        properties.CorrelationData = request.properties.CorrelationData
        client.publish(request.properties.ResponseTopic, request.payload, properties=properties)
        work.record(seq, UNKNOWN_NS, begin_ns, monotonic_ns())

    connected(broker, "bare/request", on_request)
    print(broker, flush=True)
    sys.stdin.read()


def ping(broker: str, length: int, count: int) -> None:
    watch_input()
    work = Work(length)
    replies: queue.SimpleQueue[tuple[bytes, bytes]] = queue.SimpleQueue()

    def on_reply(_client: object, _data: object, reply: mqtt.MQTTMessage) -> None:
        replies.put((reply.properties.CorrelationData, reply.payload))

    client = connected(broker, "bare/reply", on_reply)
    properties = Properties(PacketTypes.PUBLISH)
    properties.ResponseTopic = "bare/reply"
    for seq in range(count):
        begin_ns = monotonic_ns()
        payload = work.stamped(seq, begin_ns)
        properties.CorrelationData = seq.to_bytes(8, "little")
        client.publish("bare/request", payload, properties=properties)
        correlation, answer = replies.get(timeout=TIMEOUT_S)
        end_ns = monotonic_ns()
        if correlation != properties.CorrelationData or work.checked(answer) != seq:
            sys.exit(f"another reply than that to call {seq}")
        work.record(seq, begin_ns, begin_ns, end_ns)
    print(work.median_ns(count))
    client.disconnect()


if __name__ == "__main__":
    role, broker, *rest = sys.argv[1:]
    {"pong": pong, "ping": ping}[role](broker, *map(int, rest))
