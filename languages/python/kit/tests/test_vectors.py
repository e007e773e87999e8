"""The Python kit agrees with the golden vectors of the contract."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from wattwire_kit.constants import CORRUPT
from wattwire_kit.payload import FOREIGN, OK, Payload
from wattwire_kit.record import UNREADABLE, Record, RecordPayload, answer
from wattwire_kit.recorder import Recorder
from wattwire_kit.spec import BadSpec, part_specs, read_spec

ROOT = Path(__file__).resolve().parents[4]
VERDICTS = {"ok": OK, "corrupt": CORRUPT, "foreign": FOREIGN}


def vectors(name: str) -> Any:
    return json.loads((ROOT / "contract" / "vectors" / f"{name}.json").read_text())


def shape(case: dict[str, Any], nodes: list[int], verify: str = "full") -> Payload:
    keys = {"payload.bytes": case["bytes"], "payload.encoding": case["encoding"]}
    keys.update({"payload.seed": case["seed"], "payload.literal": "", "verify": verify})
    return Payload(keys, nodes)


@pytest.mark.parametrize("case", vectors("payload"), ids=lambda c: f"{c['encoding']}-{c['bytes']}")
def test_a_stamped_payload_has_the_golden_bytes(case: dict[str, Any]) -> None:
    payload = shape(case, [case["seq"] >> 48])
    payload.stamp(1, 2)  # the next stamp must overwrite this one
    payload.stamp(case["seq"], case["begin_ns"])
    assert hashlib.sha256(payload.buffer).hexdigest() == case["sha256"]
    verdict, seq, begin_ns = payload.check(bytes(payload.buffer))
    assert verdict == OK
    if payload.carries_seq:
        assert seq == case["seq"]
        unit = 2 if case["encoding"] == "text" else 1
        assert begin_ns == (case["begin_ns"] if case["bytes"] >= 16 * unit else -(2**63))


@pytest.mark.parametrize("verify", ["header", "full"])
@pytest.mark.parametrize("case", vectors("check"), ids=lambda c: f"{c['encoding']}-{c['name']}")
def test_an_arrival_gets_the_golden_verdict(case: dict[str, Any], verify: str) -> None:
    verdict, seq, _ = shape(case, case["nodes"], verify).check(bytes.fromhex(case["hex"]))
    assert (verdict, seq) == (VERDICTS[case[verify]], case["seq"])


@pytest.mark.parametrize("case", vectors("short"), ids=lambda c: f"{c['encoding']}-{c['bytes']}")
def test_short_payloads_are_completed(case: dict[str, Any]) -> None:
    payload = shape(case, [case["node"]])
    checks = [payload.check(bytes.fromhex(data)) for data in case["arrivals_hex"]]
    assert [seq for _, seq, _ in checks] == [case["node"] << 48 | c for c in case["counters"]]
    assert {verdict for verdict, _, _ in checks} == {OK}


def record_shape(case: dict[str, Any], nodes: list[int], verify: str = "full") -> RecordPayload:
    keys = {"payload.bytes": case["bytes"], "payload.seed": case["seed"], "verify": verify}
    return RecordPayload(keys, nodes)


@pytest.mark.parametrize("case", vectors("record")["made"], ids=lambda c: str(c["bytes"]))
def test_a_stamped_record_has_the_golden_fields(case: dict[str, Any]) -> None:
    payload = record_shape(case, [case["seq"] >> 48])
    payload.stamp(1, 2)
    payload.stamp(case["seq"], case["begin_ns"])
    assert payload.buffer.to_dict() == case["record"]
    arrived = Record.from_json(json.dumps(case["record"]))
    assert payload.check(arrived) == (OK, case["seq"], case["begin_ns"])
    assert Record.from_json(payload.buffer.to_json()) == arrived
    assert len(arrived) == payload.length == 96 + 16 * len(case["record"]["samples"])


@pytest.mark.parametrize("verify", ["header", "full"])
@pytest.mark.parametrize("case", vectors("record")["check"], ids=lambda c: c["name"])
def test_a_record_gets_the_golden_verdict(case: dict[str, Any], verify: str) -> None:
    payload = record_shape(case, case["nodes"], verify)
    verdict, seq, _ = payload.check(Record.from_dict(case["record"]))
    assert (verdict, seq) == (VERDICTS[case[verify]], case["seq"])


def test_replies_are_the_golden_replies() -> None:
    echo, *others = vectors("record")["replies"]
    request = Record.from_dict(echo["record"])
    for case in (echo, *others):
        assert answer(case["reply"], request, "granted").to_dict() == case["record"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "5", '{"header": 1}', "[" * 100_000, '{"header": {"seq": 1e400}}']
)
def test_an_invalid_record_is_unreadable(text: str) -> None:
    assert Record.from_json(text) is UNREADABLE


def test_a_record_with_a_field_out_of_range_is_unreadable() -> None:
    record = vectors("record")["made"][0]["record"]
    for header in ({"seq": 2**64, "send_ns": 0}, {"seq": -1, "send_ns": 0}, {"seq": 0.0}):
        text = json.dumps({**record, "header": {"send_ns": 0, **header}})
        assert Record.from_json(text) is UNREADABLE
    assert Record.from_json(json.dumps({**record, "name": None})) is UNREADABLE


@pytest.mark.parametrize("case", vectors("samples"), ids=lambda c: f"{len(c['records'])}-records")
def test_a_sample_file_has_the_golden_bytes(case: dict[str, Any], tmp_path: Path) -> None:
    recorder = Recorder(len(case["records"]))
    rows = [tuple(record.values()) for record in case["records"]]
    for row in rows + [rows[0] if rows else (0,) * 8] * case["overflow"]:
        recorder.add(*row)
    recorder.write(str(tmp_path / "samples.bin"), case["role"], case["node"], case["seed"])
    assert (tmp_path / "samples.bin").read_bytes().hex() == case["hex"]
    assert recorder.overflow == case["overflow"]


@pytest.mark.parametrize("case", vectors("spec")["valid"], ids=lambda c: c["name"])
def test_a_valid_spec_is_read(case: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(json.dumps(case["spec"]))
    assert read_spec(str(tmp_path / "spec.json")) == case["spec"]


@pytest.mark.parametrize("case", vectors("spec")["invalid"], ids=lambda c: c["name"])
def test_an_invalid_spec_names_its_key(case: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(json.dumps(case["spec"]))
    with pytest.raises(BadSpec) as caught:
        read_spec(str(tmp_path / "spec.json"))
    assert caught.value.key == case["key"]


@pytest.mark.parametrize("case", vectors("member")["valid"], ids=lambda c: c["name"])
def test_a_member_has_the_specs_of_its_parts(case: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(json.dumps(case["spec"]))
    assert part_specs(read_spec(str(tmp_path / "spec.json"))) == case["parts"]


@pytest.mark.parametrize("case", vectors("member")["invalid"], ids=lambda c: c["name"])
def test_an_invalid_spec_of_a_member_names_its_key(case: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(json.dumps(case["spec"]))
    with pytest.raises(BadSpec) as caught:
        read_spec(str(tmp_path / "spec.json"))
    assert caught.value.key == case["key"]


@pytest.mark.parametrize("case", vectors("spec")["texts"], ids=lambda c: c["name"])
def test_a_file_that_is_not_a_spec_is_rejected(case: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(case["text"])
    with pytest.raises(BadSpec) as caught:
        read_spec(str(tmp_path / "spec.json"))
    assert caught.value.key == case["key"]
