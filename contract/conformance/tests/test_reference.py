"""Test the suite's payloads and its reader of sample files against the golden bytes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from contract.conformance.payload import payload
from contract.conformance.process import parse_line
from contract.conformance.repository import ROOT
from contract.conformance.roles import ROLE_CODES
from contract.conformance.samples import Record, read_samples

VECTORS = ROOT / "contract" / "vectors"


def vectors(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


def test_a_payload_has_the_golden_bytes() -> None:
    for entry in vectors("payload"):
        data = payload(
            entry["seq"], entry["begin_ns"], entry["bytes"], entry["seed"],
            entry["encoding"] == "text",
        )  # fmt: skip
        assert hashlib.sha256(data).hexdigest() == entry["sha256"], entry


def golden_file(entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    (folder / "samples.bin").write_bytes(bytes.fromhex(entry["hex"]))
    return {
        "role": ROLE_CODES[entry["role"]], "node": entry["node"], "payload.seed": entry["seed"],
    }  # fmt: skip


@pytest.mark.parametrize("index", range(len(vectors("samples"))))
def test_a_golden_sample_file_is_read_without_a_problem(index: int, tmp_path: Path) -> None:
    entry = vectors("samples")[index]
    samples = read_samples(tmp_path, golden_file(entry, tmp_path), "node")
    assert samples.problems == []
    assert samples.records == [Record(**fields) for fields in entry["records"]]
    assert samples.overflow == entry["overflow"]


@pytest.mark.parametrize("at", [0, 8, 10, 12, 14, 15, 16, 18, 20, 24, 40, 48, 63])
def test_a_wrong_byte_in_a_header_is_a_breach_of_c24(at: int, tmp_path: Path) -> None:
    entry = vectors("samples")[0]
    spec = golden_file(entry, tmp_path)
    data = bytearray((tmp_path / "samples.bin").read_bytes())
    data[at] ^= 0x40
    (tmp_path / "samples.bin").write_bytes(data)
    assert {p.clause for p in read_samples(tmp_path, spec, "node").problems} == {"C-24"}


@pytest.mark.parametrize("length", [0, 63, 65, 144])
def test_a_truncated_file_is_a_breach_of_c24(length: int, tmp_path: Path) -> None:
    entry = vectors("samples")[0]
    spec = golden_file(entry, tmp_path)
    data = (tmp_path / "samples.bin").read_bytes()
    (tmp_path / "samples.bin").write_bytes(data[:length])
    assert {p.clause for p in read_samples(tmp_path, spec, "node").problems} == {"C-24"}


def test_a_missing_file_is_a_breach_of_c24(tmp_path: Path) -> None:
    spec = {"role": "ping", "node": 1, "payload.seed": 0}
    assert [p.clause for p in read_samples(tmp_path, spec, "node").problems] == ["C-24"]


@pytest.mark.parametrize(
    "raw", [b"READY\n", b"READY {\n", b"READY []\n", b"HELLO {}\n", b"READY {}", b"\xff {}\n"]
)
def test_a_line_outside_the_contract_has_no_fields(raw: bytes) -> None:
    assert parse_line(raw, 1).fields is None


def test_a_line_has_its_keyword_and_fields() -> None:
    line = parse_line(b'SENT {"sent": 3}\n', 7)
    assert (line.keyword, line.fields, line.t_ns) == ("SENT", {"sent": 3}, 7)
