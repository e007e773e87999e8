"""Test the kit's AES-128 against FIPS 197 and OpenSSL."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

HERE = Path(__file__).resolve().parent
FIPS_197_C1 = bytes(range(16)), bytes.fromhex("00112233445566778899aabbccddeeff")
FIPS_197_C1_CIPHERTEXT = bytes.fromhex("69c4e0d86a7b0430d8cdb78070b4c55a")


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("encryption") / "encryption"
    command = ["g++", "-std=c++17", "-O1", f"-I{HERE.parent}", str(HERE / "encryption.cpp")]
    subprocess.run([*command, "-o", str(path)], check=True)
    return path


def encrypted(program: Path, pairs: list[tuple[bytes, bytes]]) -> list[bytes]:
    text = b"".join(key + block for key, block in pairs)
    output = subprocess.run([program], input=text, capture_output=True, check=True).stdout
    return [output[at : at + 16] for at in range(0, len(output), 16)]


def by_openssl(key: bytes, block: bytes) -> bytes:
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return encryptor.update(block) + encryptor.finalize()


def test_the_example_of_fips_197_is_encrypted(program):
    assert encrypted(program, [FIPS_197_C1]) == [FIPS_197_C1_CIPHERTEXT]


def test_1000_random_keys_and_blocks_are_encrypted_as_by_openssl(program):
    source = random.Random(197)
    pairs = [(source.randbytes(16), source.randbytes(16)) for _ in range(1000)]
    assert encrypted(program, pairs) == [by_openssl(*pair) for pair in pairs]
