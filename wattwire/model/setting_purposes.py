"""Purposes of middleware settings, by which findings identify and test a setting."""

from __future__ import annotations

NAGLE_OFF = "nagle_off"
QUICK_ACK = "quick_ack"
WRITES_PER_MESSAGE = "writes_per_message"
SEND_BUFFER_BYTES = "send_buffer_bytes"
RECEIVE_BUFFER_BYTES = "receive_buffer_bytes"
FRAGMENT_BYTES = "fragment_bytes"
TLS = "tls"
REPLY_WAIT = "reply_wait"
MESSAGE = "message"
VELOCITY = "twist_stamped"
"""The level of a setting with the purpose MESSAGE with which topics carry velocity commands."""
SECURITY = "security"
SECURED, UNSECURED = "on", "off"
"""Levels of a setting with the purpose SECURITY."""

SETTING_PURPOSES: dict[str, str] = {
    NAGLE_OFF: "boolean",
    QUICK_ACK: "boolean",
    WRITES_PER_MESSAGE: "integer",
    SEND_BUFFER_BYTES: "integer",
    RECEIVE_BUFFER_BYTES: "integer",
    FRAGMENT_BYTES: "integer",
    TLS: "boolean",
    REPLY_WAIT: "string",
    MESSAGE: "string",
    SECURITY: "string",
}
"""Purpose → the type of settings with this purpose. docs/manifests.md defines the purposes."""

SWITCH = ("default", "on", "off")
"""Values of a string setting that replaces a boolean. "default" leaves the choice to the library.
"""
