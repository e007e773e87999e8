"""Reference implementation of AES-128 (FIPS 197), independent of the kits."""

from __future__ import annotations

import functools

BLOCK_BYTES = 16
ROUNDS = 10
POLYNOMIAL = 0x11B


def _product(a: int, b: int) -> int:
    """Return the product of two elements of GF(2⁸)."""
    product = 0
    for bit in range(8):
        if b >> bit & 1:
            product ^= a << bit
    for bit in range(14, 7, -1):
        if product >> bit & 1:
            product ^= POLYNOMIAL << (bit - 8)
    return product


@functools.cache
def _substitution() -> bytes:
    """Return the S-box: the inverse in GF(2⁸), then the affine map (FIPS 197, 5.1.1)."""
    box = bytearray(256)
    for value in range(256):
        inverse = next((other for other in range(256) if _product(value, other) == 1), 0)
        bits = [
            (inverse >> i ^ inverse >> (i + 4) % 8 ^ inverse >> (i + 5) % 8
             ^ inverse >> (i + 6) % 8 ^ inverse >> (i + 7) % 8 ^ 0x63 >> i) & 1
            for i in range(8)
        ]  # fmt: skip
        box[value] = sum(bit << i for i, bit in enumerate(bits))
    return bytes(box)


def round_keys(key: bytes) -> list[bytes]:
    """Return the 11 round keys, of 16 bytes each, of a key of 16 bytes (FIPS 197, 5.2)."""
    words = [key[at : at + 4] for at in range(0, BLOCK_BYTES, 4)]
    constant = 1
    while len(words) < 4 * (ROUNDS + 1):
        word = words[-1]
        if len(words) % 4 == 0:
            rotated = (word[1:] + word[:1]).translate(_substitution())
            word = bytes([rotated[0] ^ constant]) + rotated[1:]
            constant = _product(constant, 2)
        words.append(_sum(words[-4], word))
    return [b"".join(words[at : at + 4]) for at in range(0, len(words), 4)]


def encrypted_block(keys: list[bytes], block: bytes) -> bytes:
    """Return the ciphertext of a block of 16 bytes (FIPS 197, 5.1)."""
    state = _sum(block, keys[0])
    for number in range(1, ROUNDS + 1):
        state = state.translate(_substitution())
        state = bytes(state[(at + 4 * (at % 4)) % BLOCK_BYTES] for at in range(BLOCK_BYTES))
        if number < ROUNDS:
            state = b"".join(_mixed(state[at : at + 4]) for at in range(0, BLOCK_BYTES, 4))
        state = _sum(state, keys[number])
    return state


def _sum(a: bytes, b: bytes) -> bytes:
    return bytes(x ^ y for x, y in zip(a, b, strict=True))


@functools.cache
def _doubles() -> bytes:
    return bytes(_product(value, 2) for value in range(256))


def _mixed(column: bytes) -> bytes:
    double = column.translate(_doubles())
    return bytes(
        double[i] ^ double[(i + 1) % 4] ^ column[(i + 1) % 4] ^ column[(i + 2) % 4]
        ^ column[(i + 3) % 4]
        for i in range(4)
    )  # fmt: skip
