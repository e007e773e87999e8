"""Test that faults of a device are detected: by clause, or by an error of the node."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from contract.conformance.cell import CellUnderTest, ClauseResult
from contract.conformance.group import HANG_S
from contract.conformance.process import NodeProcess
from contract.conformance.spec import base_spec, new_token
from contract.conformance.suite import run_suite
from middleware.coproc.tests.devices import BuiltCell, server_node
from wattwire.catalog import Catalog, Cell
from wattwire.model.errors import MissingError
from wattwire.rig.builds import check_requirements

DEVICES = (
    "scalar",
    pytest.param("qemu-an385", marks=pytest.mark.matrix),
    pytest.param("qemu-rv32-virt", marks=pytest.mark.matrix),
    pytest.param("cuda", marks=pytest.mark.matrix),
)
OTHER_ENGINES = {"cuda": "device/cuda.cu"}
"""Device → the source of its engine, unless this is that of `scalar`."""
ENCRYPTION = "if (blocks > 0) engine_encrypt(head->key, data + (first - head->offset), blocks);"
ANSWER = "switch (head->operation) {"
AES_ROUND = "a = next_a, b = next_b, c = next_c, d = next_d;"
FAULTS = {
    "drops every fourth short message": (
        "device/answer.c", ANSWER,
        "static unsigned short_messages;\n"
        f"  if (head->message_bytes < 1000 && ++short_messages % 4 == 0) return 0;\n  {ANSWER}",
        "C-12",
    ),
    "alters the last byte": (
        "device/answer.c", ENCRYPTION,
        f"{ENCRYPTION}\n  if (blocks > 0) data[end - head->offset - 1] ^= 1;", "C-40",
    ),
    "swaps the halves of the blocks": (
        "device/answer.c", ENCRYPTION,
        f"{ENCRYPTION}\n  for (size_t at = 0; at < blocks / 2 * 16; ++at) {{\n"
        "    uint8_t *half = data + (first - head->offset) + at, *other = half + blocks / 2 * 16;\n"
        "    const uint8_t byte = *half;\n    *half = *other;\n    *other = byte;\n  }", "C-40",
    ),
    "echoes": ("device/answer.c", ENCRYPTION, "", "C-40"),
    "encrypts with a wrong round": (
        "{engine}", AES_ROUND, f"{AES_ROUND}\n    a ^= (uint32_t)(round == 9);", "C-40",
    ),
}  # fmt: skip
GPU = "/dev/nvidiactl"
QUICK = ("echoes",)
"""The fault that `make test-full` plants; `make test-all` plants all."""
pytestmark = pytest.mark.slow


def encrypting(cell: CellUnderTest) -> list[ClauseResult]:
    return [r for r in run_suite(cell, only=["encrypting"]) if r.status == "failed"]


@pytest.mark.parametrize("built", DEVICES, indirect=True)
@pytest.mark.parametrize(
    "fault",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.matrix) for name in FAULTS],
)
def test_a_faulty_device_breaks_its_clause(built: BuiltCell, tmp_path: Path, fault: str) -> None:
    file, find, new, clause = FAULTS[fault]
    file = file.replace("{engine}", OTHER_ENGINES.get(built.cell.folder.name, "device/scalar.c"))
    failed = encrypting(built.with_fault(tmp_path / "faulty", file, find, new))
    assert clause in {result.clause for result in failed}, failed


@pytest.mark.matrix
@pytest.mark.parametrize("built", DEVICES, indirect=True)
def test_an_unchanged_device_breaks_no_clause(built: BuiltCell, tmp_path: Path) -> None:
    assert encrypting(built.with_fault(tmp_path / "same", "device/answer.c", ANSWER, ANSWER)) == []


TWICE = {
    "process": ("device/process.c", "if (answered > 0) sendto", "if (answered > 0) sendto(opened, "
               "piece, answered, 0, (struct sockaddr *)&peer, peer_bytes);\n    "
               "if (answered > 0) sendto"),
    "board": ("firmware/main.c", "ethernet_send(received, answered);",
                   "ethernet_send(received, answered);\n    ethernet_send(received, answered);"),
}  # fmt: skip


@pytest.mark.parametrize("built", DEVICES, indirect=True)
def test_a_device_that_answers_twice_ends_the_client(built: BuiltCell, tmp_path: Path) -> None:
    kind = "board" if built.cell.folder.name.startswith("qemu-") else "process"
    faulty = built.with_fault(tmp_path / "faulty", *TWICE[kind])
    with server_node(faulty, tmp_path) as server:
        assert server.wait_line("READY", HANG_S), server.last_output()
        spec = {**base_spec(faulty, "service", "client"), "run": new_token()}
        spec["peers.endpoints"] = server.fields("LISTENING")["endpoints"]
        client = NodeProcess(faulty, spec, tmp_path / "client", "client")
        try:
            assert client.wait_exit(HANG_S) == 4, client.last_output()
            reason = client.fields("ERROR")["reason"]
        finally:
            client.kill()
    assert "the device answered call 1 twice at byte 0" in reason


@pytest.mark.parametrize("built", DEVICES, indirect=True)
def test_a_device_that_hangs_ends_the_server_with_the_limit(
    built: BuiltCell, tmp_path: Path
) -> None:
    hang = f"while (head->operation != 0) {{\n  }}\n  {ANSWER}"
    faulty = built.with_fault(tmp_path / "faulty", "device/answer.c", ANSWER, hang)
    with server_node(faulty, tmp_path, ready_timeout_ms=1500) as server:
        assert server.wait_exit(HANG_S) == 4, server.last_output()
        reason = server.fields("ERROR")["reason"]
    assert "the device did not answer within ready_timeout_ms = 1500" in reason


@pytest.mark.parametrize("built", DEVICES, indirect=True)
def test_a_device_that_dies_ends_the_server_with_its_signal(
    built: BuiltCell, tmp_path: Path
) -> None:
    with server_node(built.under_test, tmp_path) as server:
        assert server.wait_line("READY", HANG_S), server.last_output()
        (device,) = children(server)
        os.kill(device, signal.SIGKILL)
        assert server.wait_exit(HANG_S) == 4, server.last_output()
        assert "ended by signal 9" in server.fields("ERROR")["reason"]


@pytest.mark.parametrize("built", DEVICES, indirect=True)
def test_a_device_ends_with_its_killed_node(built: BuiltCell, tmp_path: Path) -> None:
    with server_node(built.under_test, tmp_path) as server:
        assert server.wait_line("READY", HANG_S), server.last_output()
        (device,) = children(server)
        os.kill(server.pid, signal.SIGKILL)
        deadline_s = time.monotonic() + HANG_S
        while is_running(device):
            assert time.monotonic() < deadline_s, f"process {device} still runs"
            time.sleep(0.01)


@pytest.mark.matrix
@pytest.mark.parametrize("built", ["cuda"], indirect=True)
def test_a_device_without_a_visible_gpu_ends_the_server(
    built: BuiltCell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with server_node(built.under_test, tmp_path) as server:
        assert server.wait_exit(HANG_S) == 4, server.last_output()
        assert "ended with exit code 1; the node's log" in server.fields("ERROR")["reason"]
        log = (server.folder / "stderr").read_text()
    assert "this device needs an NVIDIA GPU" in log


@pytest.mark.parametrize(
    ("device", "program"),
    [
        ("qemu-an385", "qemu-system-arm"),
        ("qemu-an385", "arm-none-eabi-gcc"),
        ("qemu-rv32-virt", "qemu-system-riscv32"),
        ("qemu-rv32-virt", "riscv64-unknown-elf-gcc"),
        ("cuda", "nvcc"),
    ],
)
def test_a_cell_without_its_programs_is_absent_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, program: str
) -> None:
    cell = with_programs(device, tmp_path, monkeypatch, without=program)
    with pytest.raises(MissingError, match=f"{cell.name}: {program} is not on PATH.*; install"):
        check_requirements(cell)


@pytest.mark.skipif(Path(GPU).exists(), reason=f"this machine has {GPU}")
def test_the_gpu_cell_without_a_gpu_is_absent_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = with_programs("cuda", tmp_path, monkeypatch, without="")
    with pytest.raises(MissingError, match=f"coproc/cuda: {GPU} does not exist; install it"):
        check_requirements(cell)


def with_programs(device: str, folder: Path, monkeypatch: pytest.MonkeyPatch, without: str) -> Cell:
    """Return a cell, after PATH has been set to a folder with all its programs but `without`."""
    cell = Catalog().cell(f"coproc/{device}")
    for name in cell.document["requires"]:
        if name != without and not name.startswith("/"):
            (folder / name).symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(folder))
    return cell


def children(node: NodeProcess) -> list[int]:
    """Return the process ids of a node's children."""
    tasks = Path(f"/proc/{node.pid}/task")
    return [int(pid) for task in tasks.iterdir() for pid in (task / "children").read_text().split()]


def is_running(pid: int) -> bool:
    """Return whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
