"""What a middleware's setting is for, so that findings can name it and test it."""

from __future__ import annotations

NAGLE_OFF = "nagle_off"
QUICK_ACK = "quick_ack"
WRITES_PER_MESSAGE = "writes_per_message"
SEND_BUFFER_BYTES = "send_buffer_bytes"
RECEIVE_BUFFER_BYTES = "receive_buffer_bytes"
FRAGMENT_BYTES = "fragment_bytes"
TLS = "tls"

SETTING_ROLES: dict[str, str] = {
    NAGLE_OFF: "boolean",
    QUICK_ACK: "boolean",
    WRITES_PER_MESSAGE: "integer",
    SEND_BUFFER_BYTES: "integer",
    RECEIVE_BUFFER_BYTES: "integer",
    FRAGMENT_BYTES: "integer",
    TLS: "boolean",
}
"""Role → the type that a setting of this role has. docs/manifests.md says what each means."""

SWITCH = ("default", "on", "off")
"""What a string holds in place of a boolean, where the library may decide by itself."""
