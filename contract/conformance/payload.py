"""The payload by C-19 and C-20, written from the contract alone: the suite's own reference."""

from __future__ import annotations

import struct

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_MASK = (1 << 64) - 1


def _mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def fill(seed: int, count: int) -> bytes:
    """The first `count` bytes of the fill's stream."""
    words = (count + 7) // 8
    stream = b"".join(
        struct.pack("<Q", _mix((seed + (j + 1) * 0x9E3779B97F4A7C15) & _MASK)) for j in range(words)
    )
    return stream[:count]


def payload(seq: int, send_ns: int, size: int, seed: int, text: bool) -> bytes:
    """The payload of `size` bytes, or of `size` characters in ASCII."""
    unit = 2 if text else 1
    head = struct.pack("<Qq", seq, send_ns)
    stream = fill(seed, max(0, size))
    if text:
        header = head.hex()
        body = header + "".join(ALPHABET[byte % 64] for byte in stream)
        whole = body[:size].encode()
    else:
        whole = (head + stream)[:size]
    if size >= 24 * unit:
        trailer = struct.pack("<Q", seq)
        trailer = trailer.hex().encode() if text else trailer
        whole = whole[: size - len(trailer)] + trailer
    return whole
