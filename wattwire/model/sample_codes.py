"""Codes of the sample file (C-24, C-25); written by tools/generate_constants.py."""

UNKNOWN_NS = -9223372036854775808
UNKNOWN_PEER = 65535
PROBE_COUNTER = 281474976710655
KINDS = (
    "message",
    "call",
    "goal",
    "accept",
    "feedback",
    "result",
    "relay",
)
FLAG_WARM_UP = 1
FLAG_FAILED = 2
FLAG_TIMEOUT = 4
FLAG_CORRUPT = 8
ALL_FLAGS = 15
ROLES = (
    "publisher",
    "subscriber",
    "server",
    "client",
    "action_server",
    "action_client",
    "ping",
    "pong",
)
MAGIC = b"WATTWIRE"
VERSION = 1
HEADER_BYTES = 64
RECORD_BYTES = 40
