"""Print the counters of a mosquitto broker as JSON, from its topics $SYS/#.

Usage: counters.py HOST PORT [AUTHORITY CERTIFICATE KEY], with the paths for a broker over TLS. The
program prints a reading and an empty line, and again for each line on its standard input, over one
connection. It ends with its input. Each reading waits for one
complete update of the topics, so that the counters include all earlier messages. Between readings
the program is not subscribed and sends nothing. The exit code is 1 without an update. What the
broker sends is not included, because it sends updates to this program.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence

import paho.mqtt.client as mqtt

UPDATE_S = 4.0
"""Longest wait for an update. Mosquitto 2.0 with `sys_interval 1` sends one every 2 s."""
UPTIME = "$SYS/broker/uptime"
"""The broker publishes this topic in every update, and the other topics when they change."""
QUIET_S = 0.05
"""Duration without a message after which an update is complete: the broker sends it at once."""
KEEP_ALIVE_S = 65_535
"""The longest of the protocol, because a ping would disturb the window of a run."""
TOPICS = "$SYS/#"
COUNTERS = {
    "$SYS/broker/messages/received": "packets_received",
    "$SYS/broker/publish/messages/received": "messages_received",
    "$SYS/broker/publish/messages/dropped": "messages_dropped",
    "$SYS/broker/publish/bytes/received": "message_bytes_received",
    "$SYS/broker/bytes/received": "bytes_received",
    "$SYS/broker/clients/expired": "clients_expired",
}


class Reader:
    """A connection to the broker. Only its caller drives it, so it does not wake up by itself."""

    def __init__(self, host: str, port: int, credentials: Sequence[str] = ()) -> None:
        self._counters: dict[str, int] = {}
        self._is_updating = self._received = False
        self._acknowledged: set[str] = set()
        client = self._client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
        client.on_connect = lambda *_: self._acknowledged.add("CONNECT")
        client.on_unsubscribe = lambda *_: self._acknowledged.add("UNSUBSCRIBE")
        client.on_message = lambda _client, _data, message: self._take(message)
        if credentials:
            client.tls_set(*credentials)
        client.connect(host, port, keepalive=KEEP_ALIVE_S)
        self._await("CONNECT")

    def reading(self) -> dict[str, int]:
        """Return the counters after one update, which follows the retained messages.

        Raises OSError if there is no update.
        """
        self._is_updating = False
        self._client.subscribe(TOPICS)
        deadline_s = time.monotonic() + UPDATE_S
        while not self._is_updating:
            self._step(deadline_s, f"no update of {TOPICS}")
        while self._received_within(QUIET_S):
            pass
        self._client.unsubscribe(TOPICS)
        self._await("UNSUBSCRIBE")
        return dict(self._counters)

    def close(self) -> None:
        self._client.disconnect()

    def _take(self, message: mqtt.MQTTMessage) -> None:
        self._is_updating |= message.topic == UPTIME and not message.retain
        self._received = True
        if message.topic in COUNTERS:
            self._counters[COUNTERS[message.topic]] = int(message.payload)

    def _received_within(self, seconds: float) -> bool:
        """Return whether a message arrives within this time."""
        self._received, end_s = False, time.monotonic() + seconds
        while not self._received and (left_s := end_s - time.monotonic()) > 0:
            self._loop(left_s)
        return self._received

    def _await(self, packet: str) -> None:
        """Wait until the broker acknowledges a packet."""
        deadline_s = time.monotonic() + UPDATE_S
        while packet not in self._acknowledged:
            self._step(deadline_s, f"no reply to {packet}")
        self._acknowledged.discard(packet)

    def _step(self, deadline_s: float, missing: str) -> None:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise OSError(f"{missing} within {UPDATE_S:g} s")
        self._loop(left_s)

    def _loop(self, seconds: float) -> None:
        """Send and receive for at most this time."""
        code = self._client.loop(seconds)
        if code != mqtt.MQTT_ERR_SUCCESS:
            raise OSError(mqtt.error_string(code))


def main() -> int:
    host, port = sys.argv[1], int(sys.argv[2])
    try:
        reader = Reader(host, port, sys.argv[3:])
        print(json.dumps(reader.reading()), end="\n\n", flush=True)
        for _ in sys.stdin:
            print(json.dumps(reader.reading()), end="\n\n", flush=True)
        reader.close()
    except OSError as error:
        sys.stderr.write(f"the broker at {host}:{port}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
