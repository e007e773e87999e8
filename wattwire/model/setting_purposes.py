"""Purposes of middleware settings, by which findings name a setting and test it."""

from __future__ import annotations

NAGLE_OFF = "nagle_off"
QUICK_ACK = "quick_ack"
WRITES_PER_MESSAGE = "writes_per_message"
SEND_BUFFER_BYTES = "send_buffer_bytes"
RECEIVE_BUFFER_BYTES = "receive_buffer_bytes"
FRAGMENT_BYTES = "fragment_bytes"
TLS = "tls"

SETTING_PURPOSES: dict[str, str] = {
    NAGLE_OFF: "boolean",
    QUICK_ACK: "boolean",
    WRITES_PER_MESSAGE: "integer",
    SEND_BUFFER_BYTES: "integer",
    RECEIVE_BUFFER_BYTES: "integer",
    FRAGMENT_BYTES: "integer",
    TLS: "boolean",
}
"""Purpose → the type of a setting with it. docs/manifests.md has the meaning of each."""

SWITCH = ("default", "on", "off")
"""Values of a string in place of a boolean, where the library may decide by itself."""
