"""The bare peer of this bridge: rclpy and eclipse-zenoh, joined by their callbacks."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import zenoh
from bare_forwarding import main
from wattwire_kit import Kit


class ZenohLibrary:
    """Two Zenoh peers over TCP, with the options of this bridge; the exit listens."""

    def __init__(self, kit: Kit, is_entry: bool) -> None:
        listen: list[str] = []
        if not is_entry:
            with socket.socket() as probe:
                probe.bind((kit.spec["host.address"], 0))
                listen = ["tcp/{}:{}".format(*probe.getsockname())]
        config = zenoh.Config()
        for key, value in {
            "mode": "peer",
            "listen/endpoints": listen,
            "connect/endpoints": kit.spec["peers.endpoints"] if is_entry else [],
            "scouting/multicast/enabled": False,
            "scouting/gossip/enabled": False,
            "transport/shared_memory/enabled": False,
        }.items():
            config.insert_json5(key, json.dumps(value))
        self._session = zenoh.open(config)
        self._key = f"bare/{kit.spec['run']}"
        self._publisher: Any = None
        self._subscriber: Any = None
        if is_entry:
            self._key += f"/{kit.sending_topic()}"
            block = zenoh.CongestionControl.BLOCK
            self._publisher = self._session.declare_publisher(self._key, congestion_control=block)
            self.send = self._publisher.put
        else:
            self._key += f"/{kit.receiving_topic()}"
            kit.listening(listen)

    def subscribe(self, on_message: Callable[[bytes], Any]) -> None:
        self._subscriber = self._session.declare_subscriber(
            self._key, lambda sample: on_message(sample.payload.to_bytes())
        )

    def matched(self) -> int:
        return 1 if self._publisher is None else int(self._publisher.matching_status.matching)

    def close(self) -> None:
        self._session.close()


if __name__ == "__main__":
    main(ZenohLibrary)
