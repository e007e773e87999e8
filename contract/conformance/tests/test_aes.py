"""Test the suite's AES-128 against FIPS 197 and OpenSSL."""

from __future__ import annotations

import random

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from contract.conformance.encryption.aes import encrypted_block, round_keys
from contract.conformance.payload import encrypted, payload


def test_the_example_of_fips_197_is_encrypted() -> None:
    block = bytes.fromhex("00112233445566778899aabbccddeeff")
    ciphertext = encrypted_block(round_keys(bytes(range(16))), block)
    assert ciphertext.hex() == "69c4e0d86a7b0430d8cdb78070b4c55a"


def test_1000_random_keys_and_blocks_are_encrypted_as_by_openssl() -> None:
    source = random.Random(197)
    for _ in range(1000):
        key, block = source.randbytes(16), source.randbytes(16)
        encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
        assert encrypted_block(round_keys(key), block) == encryptor.update(block)


def test_an_encrypting_reply_changes_only_the_blocks() -> None:
    request = payload(3 << 48, 5, 40 + 3 * 16, 7, text=False)
    reply = encrypted(request)
    encryptor = Cipher(algorithms.AES(request[16:32]), modes.ECB()).encryptor()
    assert reply == request[:32] + encryptor.update(request[32:80]) + request[80:]
    assert encrypted(request[:32] + request[80:]) == request[:32] + request[80:]
