"""Print the counters of a mosquitto broker as JSON, from its topics $SYS/#.

Usage: counters.py HOST PORT. The broker updates its topics every second (sys_interval). This
program waits for one complete update, so that the counters include all earlier messages. The exit
code is 1 without one. What the broker sends is not included, because it sends updates to this
program.
"""

from __future__ import annotations

import json
import queue
import sys

import paho.mqtt.client as mqtt

UPDATE_S = 4.0
UPTIME = "$SYS/broker/uptime"
"""The broker publishes this topic in every update, and the other topics when they change."""
QUIET_S = 0.05
"""Duration without a message after which an update is complete: the broker sends it at once."""
COUNTERS = {
    "$SYS/broker/messages/received": "packets_received",
    "$SYS/broker/publish/messages/received": "messages_received",
    "$SYS/broker/publish/messages/dropped": "messages_dropped",
    "$SYS/broker/publish/bytes/received": "message_bytes_received",
    "$SYS/broker/bytes/received": "bytes_received",
    "$SYS/broker/clients/expired": "clients_expired",
}


def main() -> int:
    messages: queue.SimpleQueue[mqtt.MQTTMessage] = queue.SimpleQueue()
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    client.on_connect = lambda *_: client.subscribe("$SYS/#")
    client.on_message = lambda _client, _data, message: messages.put(message)
    try:
        client.connect(sys.argv[1], int(sys.argv[2]))
    except OSError as error:
        sys.stderr.write(f"no broker at {sys.argv[1]}:{sys.argv[2]}: {error}\n")
        return 1
    client.loop_start()
    try:
        print(json.dumps(updated(messages)))
    except queue.Empty:
        sys.stderr.write(f"the broker sent no update of $SYS within {UPDATE_S:g} s\n")
        return 1
    finally:
        client.disconnect()
        client.loop_stop()
    return 0


def updated(messages: queue.SimpleQueue[mqtt.MQTTMessage]) -> dict[str, int]:
    """Return the counters after one update, which follows the retained messages.

    Raises queue.Empty if there is no update.
    """
    counters: dict[str, int] = {}
    is_updating = False
    while True:
        try:
            message = messages.get(timeout=QUIET_S if is_updating else UPDATE_S)
        except queue.Empty:
            if is_updating:
                return counters
            raise
        is_updating |= message.topic == UPTIME and not message.retain
        if message.topic in COUNTERS:
            counters[COUNTERS[message.topic]] = int(message.payload)


if __name__ == "__main__":
    sys.exit(main())
