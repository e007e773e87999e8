"""Test every engine and firmware against FIPS 197 and OpenSSL."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from middleware.coproc.tests.devices import ECHO, ENCRYPT, HEAD, BuiltCell, started
from wattwire.catalog import Catalog

QUICK = ("scalar", "openssl", "qemu-an385")
"""The devices that `make test-full` checks; `make test-all` checks all."""
NAMES = [name.partition("/")[2] for name in Catalog().cells if name.startswith("coproc/")]
CELLS = [pytest.param(name, marks=[] if name in QUICK else pytest.mark.matrix) for name in NAMES]
pytestmark = pytest.mark.slow


def by_openssl(key: bytes, blocks: bytes) -> bytes:
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return encryptor.update(blocks) + encryptor.finalize()


@pytest.mark.parametrize("built", CELLS, indirect=True)
def test_the_example_of_fips_197_is_encrypted(built: BuiltCell, tmp_path: Path) -> None:
    block = bytes.fromhex("00112233445566778899aabbccddeeff")
    with started(built.under_test, tmp_path) as device:
        ciphertext = device.encrypted(bytes(range(16)), block)
    assert ciphertext.hex() == "69c4e0d86a7b0430d8cdb78070b4c55a"


@pytest.mark.parametrize("built", CELLS, indirect=True)
def test_1000_random_keys_and_blocks_are_encrypted_as_by_openssl(
    built: BuiltCell, tmp_path: Path
) -> None:
    source = random.Random(built.cell.name)
    with started(built.under_test, tmp_path) as device:
        for _ in range(1000):
            key, block = source.randbytes(16), source.randbytes(16)
            assert device.encrypted(key, block) == by_openssl(key, block)


@pytest.mark.parametrize("built", CELLS, indirect=True)
def test_all_blocks_of_a_frame_are_encrypted(built: BuiltCell, tmp_path: Path) -> None:
    source = random.Random(5)
    key, blocks = source.randbytes(16), source.randbytes(87 * 16)
    with started(built.under_test, tmp_path) as device:
        assert device.encrypted(key, blocks) == by_openssl(key, blocks)


@pytest.mark.parametrize("built", CELLS, indirect=True)
def test_malformed_pieces_are_not_answered(built: BuiltCell, tmp_path: Path) -> None:
    key = bytes(16)
    malformed = {
        "half a head": HEAD.pack(ECHO, 1, 0, 0, key)[:20],
        "an unknown operation": HEAD.pack(7, 1, 0, 0, key),
        "more data than its message has": HEAD.pack(ECHO, 1, 0, 8, key) + bytes(16),
        "data beyond its message": HEAD.pack(ECHO, 1, 64, 48, key),
        "an offset within a block": HEAD.pack(ENCRYPT, 1, 8, 72, key) + bytes(64),
        "a message without a frame": HEAD.pack(ENCRYPT, 1, 0, 39, key) + bytes(39),
    }
    with started(built.under_test, tmp_path) as device:
        for name, datagram in malformed.items():
            assert device.is_silent(datagram), name
        assert device.exchange(ECHO, key, b"still running")[1] == b"still running"
