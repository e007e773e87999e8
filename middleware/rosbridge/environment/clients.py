"""What the clients in Python share: the bridge's endpoint, payloads in JSON, and READY."""

from __future__ import annotations

import base64
from typing import Any

from wattwire_kit import BadSpec, Kit

SERVERS = ("websocket", "tcp", "udp")
"""Values of the setting `server`, in the order of the bridge's endpoints after the master's."""


def bridge_endpoint(kit: Kit) -> tuple[str, int]:
    """Return the host and the port of the server that the spec selects."""
    endpoints = kit.spec["peers.endpoints"]
    place = 1 + SERVERS.index(kit.setting("server"))
    host, _, port = endpoints[place].rpartition(":") if len(endpoints) > place else ("",) * 3
    if not host or not port.isdecimal() or int(port) > 65_535:
        allowed = f"HOST:PORT of the master and of the bridge ({', '.join(SERVERS)})"
        raise BadSpec("peers.endpoints", endpoints, allowed)
    return host, int(port)


def message_type(kit: Kit) -> str:
    return "std_msgs/String" if kit.text else "std_msgs/UInt8MultiArray"


def data_in_json(kit: Kit, payload: Any) -> str:
    """Return the field `data` of a message in JSON: a text as it is, bytes in base64."""
    if not kit.text:
        return base64.b64encode(payload).decode("ascii")
    return payload if isinstance(payload, str) else payload.decode("utf-8", "replace")


def effective(kit: Kit, endpoint: str) -> dict[str, Any]:
    """Return READY's `effective` except the settings of the spec."""
    return {"type": message_type(kit), "protocol": "rosbridge 2", "bridge": endpoint}
