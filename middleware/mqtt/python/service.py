"""Service and pingpong patterns: MQTT 5 request and response by response topic and correlation."""

from __future__ import annotations

import queue
from typing import Any

import paho.mqtt.client as mqtt
from connection import Connection
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from wattwire_kit import Kit


def serve(kit: Kit) -> None:
    connection = Connection(kit)

    def on_request(_client: Any, _userdata: Any, request: mqtt.MQTTMessage) -> None:
        reply = kit.serve(request.payload)
        if reply is None or request.properties is None:
            return
        properties = Properties(PacketTypes.PUBLISH)
        properties.CorrelationData = request.properties.CorrelationData
        connection.publish(request.properties.ResponseTopic, bytes(reply), properties)
        kit.served()

    begin_ns = kit.now()
    granted = connection.subscribe(f"{connection.prefix}/request", on_request)
    connection.ready(kit.now() - begin_ns, granted)
    kit.poll(connection.watch)
    connection.close()


def call(kit: Kit) -> None:
    connection = Connection(kit)
    request_topic = f"{connection.prefix}/request"
    replies: queue.SimpleQueue[tuple[bytes, bytes]] = queue.SimpleQueue()

    def on_reply(_client: Any, _userdata: Any, reply: mqtt.MQTTMessage) -> None:
        correlation = getattr(reply.properties, "CorrelationData", b"")
        replies.put((correlation, reply.payload))

    properties = Properties(PacketTypes.PUBLISH)
    properties.ResponseTopic = f"{connection.prefix}/reply/{kit.spec['node']}"
    number = 0

    def call_once(buffer: bytearray, timeout_s: float) -> Any:
        nonlocal number
        number += 1
        properties.CorrelationData = number.to_bytes(8, "little")
        payload = buffer.decode("ascii") if kit.text else bytes(buffer)
        deadline_ns = kit.now() + int(timeout_s * 1e9)
        connection.publish(request_topic, payload, properties)
        while (left_ns := deadline_ns - kit.now()) > 0:
            try:
                correlation, reply = replies.get(timeout=left_ns / 1e9)
            except queue.Empty:
                break
            if correlation == properties.CorrelationData:
                return reply
        if connection.lost.is_set():
            connection.watch(0)
        return None

    begin_ns = kit.now()
    granted = connection.subscribe(properties.ResponseTopic, on_reply)
    kit.probe(call_once)
    connection.ready(kit.now() - begin_ns, granted)
    kit.call_all(call_once)
    connection.close()
