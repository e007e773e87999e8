"""Test the CUDA kernel on the CPU, because most machines that run the tests have no GPU.

`test_coproc_aes.py` tests the same on a GPU.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from middleware.coproc.tests.devices import BuiltCell, Device, started
from middleware.coproc.tests.test_coproc_aes import by_openssl

CUDA_ON_CPU = Path(__file__).parent / "cuda_on_cpu"
LAUNCH = re.compile(r"(\w+)<<<(.*?)>>>\(", re.DOTALL)
THREADS = 128
"""CUDA threads of a thread block; each encrypts a block."""
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def device(built: BuiltCell, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Device]:
    """Yield the device of `cuda`, compiled for the CPU and started by the node of `scalar`."""
    folder = tmp_path_factory.mktemp("cuda_on_cpu")
    sources = built.cell.middleware.folder / "environment" / "device"
    text, launches = LAUNCH.subn(r"launch(\1, \2, ", (sources / "cuda.cu").read_text())
    assert launches == 1, f"cuda.cu has {launches} launches"
    (folder / "cuda.cpp").write_text(text)
    objects = []
    for compiler, source in (
        (["g++", "-std=c++20", "-Wno-unknown-pragmas", f"-I{CUDA_ON_CPU}"], folder / "cuda.cpp"),
        (["gcc", "-std=c11"], sources / "process.c"),
        (["gcc", "-std=c11"], sources / "answer.c"),
    ):
        objects.append(str(folder / f"{source.stem}.o"))
        flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{sources}", "-c"]
        subprocess.run([*compiler, *flags, str(source), "-o", objects[-1]], check=True)
    subprocess.run(["g++", "-pthread", *objects, "-o", str(folder / "device")], check=True)
    shutil.copy(built.under_test.argv[0], folder / "node")
    cell = replace(built.under_test, argv=[str(folder / "node")])
    with started(cell, folder) as running:
        yield running


@pytest.mark.parametrize("built", ["scalar"], indirect=True)
def test_the_kernel_encrypts_the_example_of_fips_197(device: Device) -> None:
    block = bytes.fromhex("00112233445566778899aabbccddeeff")
    ciphertext = device.encrypted(bytes(range(16)), block)
    assert ciphertext.hex() == "69c4e0d86a7b0430d8cdb78070b4c55a"


@pytest.mark.parametrize("built", ["scalar"], indirect=True)
def test_the_kernel_encrypts_1000_random_keys_and_blocks_as_openssl(device: Device) -> None:
    source = random.Random(11)
    for _ in range(1000):
        key, block = source.randbytes(16), source.randbytes(16)
        assert device.encrypted(key, block) == by_openssl(key, block)


@pytest.mark.parametrize("built", ["scalar"], indirect=True)
@pytest.mark.parametrize("count", [THREADS - 1, THREADS, THREADS + 1, 4089])
def test_the_kernel_encrypts_all_blocks_of_several_thread_blocks(
    device: Device, count: int
) -> None:
    source = random.Random(count)
    key, blocks = source.randbytes(16), source.randbytes(16 * count)
    assert device.encrypted(key, blocks) == by_openssl(key, blocks)
