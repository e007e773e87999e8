"""The contract's keys, roles, kinds, flags and layouts; written by tools/generate_constants.py."""

from struct import Struct

CONTRACT = 3
PATTERN_ROLES = {
    "topic": ("publisher", "subscriber"),
    "service": ("client", "server"),
    "action": ("action_client", "action_server"),
    "pingpong": ("ping", "pong"),
    "pipeline": ("source", "sink"),
}
SENDERS = (
    "publisher",
    "client",
    "action_client",
    "ping",
    "source",
)
ROLE_CODES = {
    "publisher": 0,
    "subscriber": 1,
    "server": 2,
    "client": 3,
    "action_server": 4,
    "action_client": 5,
    "ping": 6,
    "pong": 7,
    "source": 8,
    "relay": 9,
    "sink": 10,
    "member": 11,
}
MESSAGE = 0
CALL = 1
GOAL = 2
ACCEPT = 3
FEEDBACK = 4
RESULT = 5
RELAY = 6
WARM_UP = 1
FAILED = 2
TIMEOUT = 4
CORRUPT = 8
UNKNOWN_NS = -9223372036854775808
UNKNOWN_PEER = 65535
PROBE = 281474976710655

# The types of a spec's keys; the harness checks their values (C-02).
KEYS: dict[str, object] = {
    "contract": int,
    "run": str,
    "cell": str,
    "pattern": str,
    "role": str,
    "node": int,
    "index": int,
    "host.address": str,
    "host.interface": str,
    "peers.nodes": [int],
    "peers.count": int,
    "peers.endpoints": [str],
    "peers.addresses": [str],
    "loop": str,
    "period_ns": int,
    "phase_ns": int,
    "duration_ns": int,
    "count": int,
    "count_beyond": int,
    "warmup_ns": int,
    "overrun_ns": int,
    "timeout_ns": int,
    "outstanding_max": int,
    "quiet_ms": int,
    "linger_ms": int,
    "ready_timeout_ms": int,
    "pacing": str,
    "spin_ns": int,
    "payload.bytes": int,
    "payload.encoding": str,
    "payload.seed": int,
    "payload.literal": str,
    "reply": str,
    "reply.literal": str,
    "verify": str,
    "action.feedback": int,
    "record.capacity": int,
    "tls.authority": str,
    "tls.certificate": str,
    "tls.key": str,
    "security.governance": str,
    "security.permissions": str,
    "declared.roles": [str],
    "declared.capabilities": [str],
    "declared.payload_bytes_min": int,
    "declared.payload_bytes_max": int,
    "declared.record_bytes_max": int,
    "declared.string_settings": [str],
    "declared.integer_settings": [str],
    "declared.boolean_settings": [str],
}
# The keys that only specs of the pattern pipeline have.
PIPELINE_KEYS: dict[str, object] = {
    "hop": int,
}
# The keys that only specs of the role member have, and those of each of its parts.
MEMBER_KEYS: dict[str, object] = {
    "parts": int,
}
PART_KEYS: dict[str, object] = {
    "run": str,
    "role": str,
    "node": int,
    "index": int,
    "peers.nodes": [int],
    "peers.count": int,
    "period_ns": int,
    "phase_ns": int,
    "payload.bytes": int,
    "payload.seed": int,
    "record.capacity": int,
}

# The allowed values of a guarantee: delivery, ordering, overload (C-07).
GUARANTEES = (
    ("best_effort", "at_most_once", "at_least_once", "exactly_once", "reliable"),
    ("none", "per_sender", "total"),
    ("drop_newest", "drop_oldest", "block", "unbounded"),
)

FILE_MAGIC = b"WATTWIRE"
FILE_VERSION = 1
FILE_CLOCK = 1
HEADER = Struct("<8sHHHBBHHIQQQ16x")
RECORD = Struct("<QqqqIHBB")
