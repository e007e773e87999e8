"""Reference implementation of payloads (C-19, C-20, C-32, C-40), independent of the kits."""

from __future__ import annotations

import json
import struct
from typing import Any

from .encryption.aes import encrypted_block, round_keys

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_MASK = (1 << 64) - 1


def _mix(z: int) -> int:
    """Return the 64-bit mix of one counter value."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def fill(seed: int, count: int) -> bytes:
    """Return the first `count` bytes of the fill."""
    words = (count + 7) // 8
    stream = b"".join(
        struct.pack("<Q", _mix((seed + (j + 1) * 0x9E3779B97F4A7C15) & _MASK)) for j in range(words)
    )
    return stream[:count]


def payload(seq: int, send_ns: int, size: int, seed: int, text: bool) -> bytes:
    """Return the payload of `size` bytes, or of `size` ASCII characters for a text."""
    unit = 2 if text else 1
    head = struct.pack("<Qq", seq, send_ns)
    stream = fill(seed, max(0, size))
    if text:
        header = head.hex()
        body = header + "".join(ALPHABET[byte % 64] for byte in stream)
        data = body[:size].encode()
    else:
        data = (head + stream)[:size]
    if size >= 24 * unit:
        trailer = struct.pack("<Q", seq)
        trailer = trailer.hex().encode() if text else trailer
        data = data[: size - len(trailer)] + trailer
    return data


def encrypted(request: bytes) -> bytes:
    """Return the encrypting reply to a request of 40 + 16 k bytes (C-40)."""
    keys = round_keys(request[16:32])
    blocks = range(32, len(request) - 8, 16)
    ciphertext = b"".join(encrypted_block(keys, request[at : at + 16]) for at in blocks)
    return request[:32] + ciphertext + request[len(request) - 8 :]


SIZE_CLAUSES = {"bytes": "C-19", "text": "C-20", "record": "C-32", "pointcloud": "C-39"}
"""Encoding → its clause."""


def nominal_size(size: int) -> int:
    """Return the nominal size, in bytes, of a record with payload.bytes = `size` (C-32)."""
    return 96 + (size - 96) // 16 * 16


def record(seq: int, send_ns: int, size: int, seed: int) -> dict[str, Any]:
    """Return the record with payload.bytes = `size`, with the names and nesting of its JSON."""
    words = struct.unpack(f"<{9 + size // 16}Q", fill(seed, 8 * (9 + size // 16)))
    values = [struct.unpack("<i", struct.pack("<Q", word)[4:])[0] / 1024 for word in words]
    return {
        "header": {"seq": str(seq), "send_ns": str(send_ns)},
        "name": "".join(ALPHABET[byte % 64] for byte in fill(seed, 16)),
        "pose": {
            "position": dict(zip("xyz", values[2:5], strict=True)),
            "orientation": dict(zip("xyzw", values[5:9], strict=True)),
        },
        "samples": [
            {"id": i, "state": words[9 + i] % 256, "value": values[9 + i]}
            for i in range((size - 96) // 16)
        ],
        "trailer": {"seq": str(seq)},
    }


def answer(request: dict[str, Any], kind: str, literal: str) -> dict[str, Any]:
    """Return the reply to the record `request`."""
    if kind == "echo":
        return request
    template = record(0, 0, 96, 0)
    pose = {name: dict.fromkeys(axes, 0.0) for name, axes in template["pose"].items()}
    if kind == "literal":
        return {**template, "name": literal, "pose": pose}
    return {**request, "name": "", "pose": pose, "samples": []}


def encoded(seq: int, send_ns: int, size: int, seed: int, encoding: str) -> bytes:
    """Return the payload in its form on the wire."""
    if encoding == "record":
        return json.dumps(record(seq, send_ns, size, seed)).encode()
    return payload(seq, send_ns, size, seed, encoding == "text")


def same(received: bytes, expected: bytes, encoding: str) -> bool:
    """Return whether two payloads on the wire are equal; records are compared as JSON values."""
    if encoding != "record":
        return received == expected
    try:
        return bool(json.loads(received) == json.loads(expected))
    except ValueError:
        return False
