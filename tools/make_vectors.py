"""Write contract/vectors/*.json according to the text of the contract.

This program imports no kit, so that the vectors cannot contain an error of a kit. After a change of
CONTRACT.md, run `python3 tools/make_vectors.py` and check the difference.
"""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "contract" / "vectors"
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
WORD = 2**64
UNKNOWN_NS = -(2**63)
HEX_BYTES_MAX = 256  # longer payloads: only the digest and the first and last 64 bytes


def mix(z: int) -> int:
    """Return the 64-bit mix of one counter value."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % WORD
    return z ^ (z >> 31)


def stream(seed: int, count: int) -> list[int]:
    """Return `count` bytes of the fill's stream (C-19): byte 8j+b is byte b of word j."""
    words = (count + 7) // 8
    values = [mix((seed + (j + 1) * 0x9E3779B97F4A7C15) % WORD) for j in range(words)]
    return [(values[i // 8] >> (8 * (i % 8))) & 255 for i in range(count)]


def payload(seed: int, seq: int, begin_ns: int, length: int, encoding: str) -> bytes:
    """Return a payload of `length` bytes (C-19), or of `length` characters for a text (C-20)."""
    header = struct.pack("<Qq", seq, begin_ns)
    trailer = struct.pack("<Q", seq)
    if encoding == "bytes":
        fill = bytes(stream(seed, max(0, length - 16)))
        data = header + fill
        return data[: length - 8] + trailer if length >= 24 else data[:length]
    characters = "".join(ALPHABET[value % 64] for value in stream(seed, max(0, length - 32)))
    text = header.hex() + characters
    text = text[: length - 16] + trailer.hex() if length >= 48 else text[:length]
    return text.encode("ascii")


GIVEN = ((0, 0, 0), (7, (2 << 48) | 5, 1_234_567_890_123), (2**53 - 1, (65534 << 48) | 99, -1))


def payload_vectors() -> list[dict[str, Any]]:
    """Return payloads of various sizes (C-19, C-20)."""
    cases = []
    for seed, seq, begin_ns in GIVEN:
        for encoding in ("bytes", "text"):
            for length in (0, 1, 7, 8, 15, 16, 17, 23, 24, 31, 32, 47, 48, 64, 65536):
                data = payload(seed, seq, begin_ns, length, encoding)
                case: dict[str, Any] = {"seed": seed, "seq": seq, "begin_ns": begin_ns}
                case.update(encoding=encoding, bytes=length)
                case["sha256"] = hashlib.sha256(data).hexdigest()
                if length <= HEX_BYTES_MAX:
                    case["hex"] = data.hex()
                else:
                    case.update(first64_hex=data[:64].hex(), last64_hex=data[-64:].hex())
                cases.append(case)
    return cases


def check_vectors() -> list[dict[str, Any]]:
    """Return arrivals at a receiver with peers.nodes [2], seed 7 and payloads of 64 (C-21)."""
    seq, begin_ns = (2 << 48) | 5, 1_234_567_890_123
    cases = []
    for encoding in ("bytes", "text"):
        good = payload(7, seq, begin_ns, 64, encoding)
        unit = 2 if encoding == "text" else 1
        fill_offset = 16 * unit + 8 + 1  # beyond the first word of the fill
        other_node = payload(7, (9 << 48) | 5, begin_ns, 64, encoding)
        other_seed = payload(8, seq, begin_ns, 64, encoding)
        flipped = bytearray(good)
        flipped[fill_offset] ^= 1
        changed_trailer = bytearray(good)
        changed_trailer[-1] = ord("f") if encoding == "text" else changed_trailer[-1] ^ 1
        arrivals = (
            ("intact", good, "ok", "ok"),
            ("a byte of the fill changed", bytes(flipped), "ok", "corrupt"),
            ("trailer changed", bytes(changed_trailer), "corrupt", "corrupt"),
            ("one byte too short", good[:-1], "corrupt", "corrupt"),
            ("one byte too long", good + b"A", "corrupt", "corrupt"),
            ("cut inside the sequence", good[: 4 * unit], "corrupt", "corrupt"),
            ("another node", other_node, "foreign", "foreign"),
            ("another seed", other_seed, "foreign", "foreign"),
        )
        for name, data, header, full in arrivals:
            case: dict[str, Any] = {"name": name, "encoding": encoding, "bytes": 64, "seed": 7}
            case.update(nodes=[2], hex=data.hex(), header=header, full=full)
            case["seq"] = None if len(data) < 8 * unit else seq
            if name == "another node":
                case["seq"] = (9 << 48) | 5
            cases.append(case)
    return cases


def short_vectors() -> list[dict[str, Any]]:
    """Return arrivals of short payloads of node 2 with their completed counters (C-21).

    A counter is completed to the value that is nearest to the next expected counter.
    """
    sequences = (
        ("bytes", 0, (0, 1, 2, 3)),
        ("bytes", 1, (0, 1, 2, 254, 255, 256, 257, 255, 600)),
        ("bytes", 7, (0, 3, 2, 70_000)),
        ("text", 1, (0, 1, 2)),
        ("text", 3, (0, 1, 5, 4, 100, 200, 300)),
        ("text", 15, (0, 1, 5, 4)),
    )
    cases = []
    for encoding, length, counters in sequences:
        arrivals = [payload(7, (2 << 48) | c, 1, length, encoding).hex() for c in counters]
        known_bytes = length // 2 if encoding == "text" else length
        expected, next_expected = [], 0
        for counter in counters:
            modulus = 256 ** min(known_bytes, 6)
            low = counter % modulus
            completed = next_expected if known_bytes == 0 else min(
                (c for c in range(low, next_expected + 2 * modulus, modulus)),
                key=lambda c, n=next_expected: (abs(c - n), -c),
            ) if modulus <= 65536 else counter  # fmt: skip
            expected.append(completed)
            next_expected = max(next_expected, completed + 1)
        case: dict[str, Any] = {"encoding": encoding, "bytes": length, "seed": 7, "node": 2}
        case.update(arrivals_hex=arrivals, counters=expected)
        cases.append(case)
    return cases


def record(seed: int, seq: int, begin_ns: int, length: int) -> dict[str, Any]:
    """Return the record with a nominal size of at most `length` bytes (C-32)."""
    words = [mix((seed + (j + 1) * 0x9E3779B97F4A7C15) % WORD) for j in range(9 + length // 16)]

    def value(j: int) -> float:
        upper = words[j] >> 32
        return (upper - 2**32 if upper >= 2**31 else upper) / 1024

    samples = [
        {"id": i, "state": words[9 + i] % 256, "value": value(9 + i)}
        for i in range((length - 96) // 16)
    ]
    return {
        "header": {"seq": str(seq), "send_ns": str(begin_ns)},
        "name": "".join(ALPHABET[byte % 64] for byte in stream(seed, 16)),
        "pose": {
            "position": dict(zip("xyz", map(value, (2, 3, 4)), strict=True)),
            "orientation": dict(zip("xyzw", map(value, (5, 6, 7, 8)), strict=True)),
        },
        "samples": samples,
        "trailer": {"seq": str(seq)},
    }


def answer(request: dict[str, Any], reply: str) -> dict[str, Any]:
    """Return a server's reply to `request` (C-32); `reply.literal` is "granted"."""
    if reply == "echo":
        return request
    empty_fields = {"header": {"seq": "0", "send_ns": "0"}, "trailer": {"seq": "0"}}
    identity = {name: request[name] for name in empty_fields} if reply == "ack" else empty_fields
    pose = {"position": dict.fromkeys("xyz", 0.0), "orientation": dict.fromkeys("xyzw", 0.0)}
    name = "granted" if reply == "literal" else ""
    return {**identity, "name": name, "pose": pose, "samples": []}


def record_vectors() -> dict[str, Any]:
    """Return records, replies and arrivals (C-32).

    The arrivals in `check` are at a receiver with peers.nodes [2] and seed 7.
    """
    records = []
    for seed, seq, begin_ns in GIVEN:
        for length in (96, 111, 112, 128, 1024):
            case: dict[str, Any] = {"seed": seed, "seq": seq, "begin_ns": begin_ns}
            records.append({**case, "bytes": length, "record": record(seed, seq, begin_ns, length)})
    seq, begin_ns = (2 << 48) | 5, 1_234_567_890_123
    good = record(7, seq, begin_ns, 128)
    replies = [{"reply": kind, "record": answer(good, kind)} for kind in ("echo", "ack", "literal")]
    pose, (first, second) = good["pose"], good["samples"]
    other_pose = {**pose, "orientation": {**pose["orientation"], "w": 0.5}}
    other_value, other_state = {**second, "value": 1.0}, {**first, "state": 256}
    arrivals: tuple[tuple[str, dict[str, Any], str, str], ...] = (
        ("intact", {}, "ok", "ok"),
        ("pose changed", {"pose": other_pose}, "ok", "corrupt"),
        ("a sample's value changed", {"samples": [first, other_value]}, "ok", "corrupt"),
        ("a sample's state changed", {"samples": [other_state, second]}, "ok", "corrupt"),
        ("samples exchanged", {"samples": [second, first]}, "ok", "corrupt"),
        ("trailer changed", {"trailer": {"seq": str(seq + 1)}}, "corrupt", "corrupt"),
        ("a sample too few", {"samples": [first]}, "corrupt", "corrupt"),
        ("a sample too many", {"samples": [first, second, first]}, "corrupt", "corrupt"),
        ("another node", record(7, (9 << 48) | 5, begin_ns, 128), "foreign", "foreign"),
        ("another seed", record(8, seq, begin_ns, 128), "foreign", "foreign"),
        ("no name", {"name": ""}, "foreign", "foreign"),
    )  # fmt: skip
    check = []
    for name, changes, header, full in arrivals:
        arrived = {**good, **changes}
        check.append({"name": name, "bytes": 128, "seed": 7, "nodes": [2], "record": arrived})
        check[-1].update(header=header, full=full, seq=int(arrived["header"]["seq"]))
    return {"made": records, "replies": replies, "check": check}


def sample_vectors() -> list[dict[str, Any]]:
    """Return sample files with their decoded content (C-24, C-25)."""
    records = [
        [(2 << 48) | 0, 1000, 1010, 1500, 64, 1, 0, 1],
        [(2 << 48) | 1, 2000, 2010, UNKNOWN_NS, 64, 1, 1, 4],
        [(3 << 48) | 7, UNKNOWN_NS, 3000, 3001, 65536, 65535, 4, 8],
    ]
    cases = []
    for role, node, seed, overflow, rows in ((1, 1, 7, 0, records), (3, 2, 2**53 - 1, 5, [])):
        header = struct.pack(
            "<8sHHHBBHHIQQQ16x",
            *(b"WATTWIRE", 1, 64, 40, role, 1, node, 0, 0, len(rows), overflow, seed),
        )
        body = b"".join(struct.pack("<QqqqIHBB", *row) for row in rows)
        names = ("seq", "intended_ns", "begin_ns", "end_ns", "bytes", "peer", "kind", "flags")
        decoded = [dict(zip(names, row, strict=True)) for row in rows]
        fields = {"role": role, "node": node, "seed": seed, "overflow": overflow}
        cases.append({**fields, "records": decoded, "hex": (header + body).hex()})
    return cases


def base_spec(pattern: str, role: str, node: int, peers: list[int]) -> dict[str, Any]:
    """Return a complete valid spec without settings."""
    return {
        "contract": 3, "run": "vector01", "cell": "loopback/python", "pattern": pattern,
        "role": role, "node": node, "index": 0, "host.address": "127.0.0.1",
        "host.interface": "lo", "peers.nodes": peers, "peers.count": len(peers),
        "peers.endpoints": [], "peers.addresses": ["127.0.0.1"], "loop": "open",
        "period_ns": 10_000_000, "phase_ns": 0,
        "duration_ns": 1_000_000_000, "count": 0, "count_beyond": 0, "warmup_ns": 0,
        "overrun_ns": 100_000_000, "timeout_ns": 200_000_000, "outstanding_max": 1,
        "quiet_ms": 100, "linger_ms": 1000, "ready_timeout_ms": 5000, "pacing": "kit",
        "spin_ns": 0, "payload.bytes": 64, "payload.encoding": "bytes", "payload.seed": 7,
        "payload.literal": "", "reply": "echo", "reply.literal": "", "verify": "header",
        "action.feedback": 0, "record.capacity": 1000, "tls.authority": "",
        "tls.certificate": "", "tls.key": "", "security.governance": "",
        "security.permissions": "",
        "declared.roles": list(ROLES[pattern]),
        "declared.capabilities": ["encoding.bytes", "pacing.kit", "loop.open", "reply.echo"],
        "declared.payload_bytes_min": 0, "declared.payload_bytes_max": 67_108_864,
        "declared.record_bytes_max": 67_108_864, "declared.string_settings": [],
        "declared.integer_settings": [], "declared.boolean_settings": [],
    }  # fmt: skip


ROLES = {
    "topic": ("subscriber", "publisher"),
    "service": ("server", "client"),
    "action": ("action_server", "action_client"),
    "pingpong": ("pong", "ping"),
}


def spec_vectors() -> dict[str, Any]:
    """Return valid, invalid and unsound specs.

    A node must refuse `invalid` specs. `unsound` specs are changed valid specs. The harness refuses
    them, and a node may refuse them.
    """
    valid = []
    for pattern, (receiver, sender) in ROLES.items():
        for role, node, peers in ((receiver, 1, [2]), (sender, 2, [1])):
            valid.append(
                {"name": f"{pattern} {role}", "spec": base_spec(pattern, role, node, peers)}
            )
    publisher = base_spec("topic", "publisher", 2, [1])
    record = with_encoding(publisher, "record", 96)
    valid.append({"name": "a record of the least size", "spec": record})
    one_point = with_encoding(publisher, "pointcloud", 16)
    valid.append({"name": "a point cloud of one point", "spec": one_point})
    client = base_spec("service", "client", 2, [1])
    client.update({"reply": "encrypt", "payload.bytes": 40})
    client["declared.capabilities"] = [*client["declared.capabilities"], "reply.encrypt"]
    valid.append({"name": "an encrypting reply without blocks", "spec": client})
    with_settings = {**publisher, **SETTINGS}
    valid.append({"name": "a setting of each type", "spec": with_settings})
    limited = {**with_settings, "declared.allowed.depth": [1, 2], "declared.allowed.fast": [True]}
    valid.append({"name": "settings with a list of values", "spec": limited})
    invalid = setting_vectors(with_settings)
    wrong_values: tuple[tuple[str, Any], ...] = (
        ("contract", 2), ("contract", True), ("run", 5), ("node", "2"), ("index", True),
        ("peers.nodes", 1), ("peers.endpoints", "x"), ("loop", 0), ("period_ns", "5"),
        ("payload.bytes", None), ("payload.literal", 5), ("verify", []), ("quiet_ms", True),
        ("settings.surprise", 1), ("tls.key", False), ("host.interface", 0),
        ("peers.addresses", [1]), ("host.address", "127.0.0"), ("host.address", "localhost"),
        ("host.address", "127.0.0.256"), ("host.address", "127.0.0.01"), ("host.address", "::1"),
        ("peers.addresses", ["127.0.0.1", "127.1"]), ("declared.roles", "publisher"),
        ("declared.capabilities", [1]), ("declared.payload_bytes_max", "64"),
        ("declared.string_settings", 0),
    )  # fmt: skip
    for key, value in wrong_values:
        invalid.append({"name": f"{key} = {value!r}", "spec": {**publisher, key: value}})
        invalid[-1].update(code=2, key=key)
    for key in publisher:
        missing = {name: value for name, value in publisher.items() if name != key}
        invalid.append({"name": f"{key} missing", "spec": missing, "code": 2, "key": key})
    words = {"not JSON": "{", "not an object": "[]"}
    texts = [{"name": k, "text": v, "code": 2, "key": "--spec"} for k, v in words.items()]
    return {"valid": valid, "invalid": invalid, "unsound": unsound_vectors(), "texts": texts}


def with_encoding(spec: dict[str, Any], encoding: str, payload_bytes: int) -> dict[str, Any]:
    """Return the spec with another encoding, which it also declares."""
    capabilities = [*spec["declared.capabilities"], f"encoding.{encoding}"]
    changes = {"payload.encoding": encoding, "payload.bytes": payload_bytes}
    return {**spec, **changes, "declared.capabilities": capabilities}


def unsound_vectors() -> list[dict[str, Any]]:
    """Return changes to valid specs that the harness refuses."""
    closed = {"loop": "closed", "period_ns": 0, "duration_ns": 0}
    unsound = [{"name": "closed without count", "of": "service client", "changes": closed}]
    values: tuple[tuple[str, Any], ...] = (
        ("run", "ABCD"), ("run", "abc"), ("run", "a" * 33), ("cell", "loopback"),
        ("pattern", "stream"), ("role", "server"), ("node", -1), ("node", 65535),
        ("peers.nodes", ["1"]), ("peers.nodes", [65535]), ("peers.endpoints", [1]),
        ("loop", "half"), ("loop", "closed"), ("period_ns", 0), ("period_ns", -1),
        ("duration_ns", 0), ("phase_ns", -1), ("timeout_ns", 0), ("outstanding_max", 0),
        ("ready_timeout_ms", 0), ("pacing", "middleware"), ("payload.bytes", 67_108_865),
        ("payload.encoding", "utf-8"), ("payload.seed", 2**53), ("reply", "none"),
        ("verify", "none"), ("record.capacity", -1), ("surprise", 1), ("action.feedback", -1),
        ("host.address", "0.0.0.0"), ("host.interface", ""), ("host.interface", "l o"),
        ("declared.payload_bytes_min", -1), ("declared.payload_bytes_max", 67_108_865),
        ("declared.record_bytes_max", -1), ("declared.integer_settings", ["Depth"]),
    )  # fmt: skip
    for key, value in values:
        changes = {key: value}
        unsound.append({"name": f"{key} = {value!r}", "of": "topic publisher", "changes": changes})
    smallest_record = "a record of the least size"
    for key, value in (("payload.bytes", 95), ("payload.literal", "Hello")):
        changes = {key: value}
        unsound.append(
            {"name": f"record: {key} = {value!r}", "of": smallest_record, "changes": changes}
        )
    for key, value in (("payload.bytes", 0), ("payload.bytes", 24), ("payload.literal", "Hello")):
        name = f"point cloud: {key} = {value!r}"
        changes = {key: value}
        unsound.append({"name": name, "of": "a point cloud of one point", "changes": changes})
    unsound += encrypting_vectors()
    clouds = {"payload.encoding": "pointcloud"}
    unsound.append({"name": "a service of clouds", "of": "service client", "changes": clouds})
    return unsound


SETTINGS: dict[str, Any] = {
    "declared.string_settings": ["mode"], "declared.integer_settings": ["depth"],
    "declared.boolean_settings": ["fast"], "settings.mode": "a", "settings.depth": 1,
    "settings.fast": True,
}  # fmt: skip


def setting_vectors(good: dict[str, Any]) -> list[dict[str, Any]]:
    """Return invalid specs, each with a setting that is missing, mistyped or not declared."""
    changes: tuple[tuple[str, str, Any], ...] = (
        ("settings.mode", "settings.mode", 1), ("settings.depth", "settings.depth", "1"),
        ("settings.depth", "settings.depth", True), ("settings.fast", "settings.fast", 1),
        ("settings.fast", "settings.fast", "true"), ("settings.mode", "settings.mode", ["a"]),
        ("settings.mode", "declared.string_settings", []),
        ("settings.depth", "declared.integer_settings", []),
        ("settings.fast", "declared.boolean_settings", []),
        ("settings.other", "declared.string_settings", ["mode", "other"]),
    )  # fmt: skip
    return [
        {
            "name": f"{key}: {changed} = {value!r}", "spec": {**good, changed: value}, "code": 2,
            "key": key,
        }
        for key, changed, value in changes
    ]  # fmt: skip


def encrypting_vectors() -> list[dict[str, Any]]:
    """Return unsound specs of encrypting replies (C-40)."""
    unsound = []
    for key, value in (
        ("payload.bytes", 39), ("payload.bytes", 48), ("payload.literal", "Hello"),
        ("payload.encoding", "text"),
    ):  # fmt: skip
        name = f"encrypting reply: {key} = {value!r}"
        of = "an encrypting reply without blocks"
        unsound.append({"name": name, "of": of, "changes": {key: value}})
    encrypt = {"reply": "encrypt", "payload.bytes": 40}
    unsound.append({"name": "an encrypting topic", "of": "topic publisher", "changes": encrypt})
    return unsound


PART_KEYS = (
    "run", "role", "node", "index", "peers.nodes", "peers.count", "period_ns", "phase_ns",
    "payload.bytes", "payload.seed", "record.capacity",
)  # fmt: skip
"""The keys of each part of a member, besides its settings (C-41)."""


def member_vectors() -> dict[str, Any]:
    """Return specs of members: valid ones with the specs of their parts, and invalid ones.

    Only kits whose cells have members read these.
    """
    publisher = {**base_spec("topic", "publisher", 2, [1, 7]), **SETTINGS}
    subscriber = {**base_spec("topic", "subscriber", 9, [4]), **SETTINGS}
    subscriber |= {"run": "vector01f1", "payload.bytes": 300, "payload.seed": 11, "index": 3}
    subscriber |= {"settings.mode": "b", "settings.depth": 5, "settings.fast": False}
    whole = {**publisher, "role": "member", "record.capacity": 0, "parts": 2}
    whole["declared.roles"] = [*publisher["declared.roles"], "member"]
    parts = []
    for number, part in enumerate((publisher, subscriber)):
        own = {k: v for k, v in part.items() if k in PART_KEYS or k.startswith("settings.")}
        whole |= {f"part.{number}.{key}": value for key, value in own.items()}
        parts.append({**part, "declared.roles": whole["declared.roles"]})
    valid = [{"name": "a publisher and a subscriber", "spec": whole, "parts": parts}]
    invalid = []
    changes: tuple[tuple[str, Any], ...] = (
        ("parts", None), ("parts", "2"), ("parts", [2]), ("parts", 0), ("parts", 10_001),
        ("part.0.run", None), ("part.1.payload.bytes", None), ("part.1.payload.bytes", "300"),
        ("part.1.peers.nodes", 4), ("part.1.settings.mode", None), ("part.1.settings.mode", 5),
        ("part.2.node", 5), ("part.0.linger_ms", 5), ("part.0.settings.colour", 5),
        ("part.x.node", 5),
    )  # fmt: skip
    for key, value in changes:
        spec = {k: v for k, v in whole.items() if k != key}
        spec |= {} if value is None else {key: value}
        change = "missing" if value is None else f"= {value!r}"
        invalid.append({"name": f"{key} {change}", "spec": spec, "code": 2, "key": key})
    for key, value in (("parts", 1), ("part.0.node", 5)):
        spec = {**publisher, key: value}
        invalid.append({"name": f"{key} of a publisher", "spec": spec, "code": 2, "key": key})
    return {"valid": valid, "invalid": invalid}


def dialogue_vectors() -> dict[str, Any]:
    """Return the order of lines per role, their fields, and the exit codes.

    A role prints LISTENING only if it is the role in the pattern's `listens`.
    """
    sender = ["READY", "< GO", "SENT", "< STOP", "DONE"]
    receiver = ["READY", "< GO", "< STOP", "DONE"]
    roles = {}
    for listening, sending in ROLES.values():
        roles[listening] = {"lines": receiver, "when_listening": ["LISTENING", *receiver]}
        roles[sending] = {"lines": sender, "when_listening": ["LISTENING", *sender]}
    fields = {
        "LISTENING": ["endpoints"],
        "READY": ["matched", "startup_ns", "discovery_ns", "library", "effective", "guarantee"],
        "COUNTED": [],
        "SENT": ["begin_ns", "end_ns", "sent", "scheduled", "skipped"],
        "DONE": ["sent", "received", "recorded", "overflow", "foreign", "corrupt", "probes"],
        "ERROR": ["code", "key", "reason"],
    }
    codes = {
        "0": "DONE was printed",
        "2": "command line, specification, or a GO in the past",
        "3": "a capability that the cell does not have",
        "4": "the middleware failed",
        "5": "end of file on standard input",
    }
    return {"roles": roles, "fields": fields, "exit_codes": codes}


def main() -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    files: dict[str, Any] = {
        "payload.json": payload_vectors(),
        "check.json": check_vectors(),
        "short.json": short_vectors(),
        "record.json": record_vectors(),
        "samples.json": sample_vectors(),
        "spec.json": spec_vectors(),
        "member.json": member_vectors(),
        "dialogue.json": dialogue_vectors(),
    }
    for name, content in files.items():
        (TARGET / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
