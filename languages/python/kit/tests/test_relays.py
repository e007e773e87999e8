"""A relay checks, counts and records each arrival that it sends on (C-37)."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from chains import chain_specs, run_chain
from pairs import CORRUPT, COUNTER, FAILED, RECORD, UNKNOWN, WARM_UP
from wattwire_kit import UNREADABLE, Kit
from wattwire_kit.constants import PROBE
from wattwire_kit.payload import Payload
from wattwire_kit.record import RecordPayload
from wattwire_kit.spec import BadSpec, Unsupported, check_declaration, parse_spec

MESSAGE, RELAY = 0, 6
SHAPES: dict[str, dict[str, Any]] = {
    "bytes": {},
    "header": {"verify": "header"},
    "text": {"payload__encoding": "text"},
    "long": {"payload__bytes": 5_000},
    "short": {"payload__bytes": 5},
    "empty": {"payload__bytes": 0},
    "literal": {"payload__literal": "hello"},
    "record": {"payload__encoding": "record", "payload__bytes": 128},
}


class Lines:
    """The dialogue of a node after GO; it keeps the fields of the lines that the node prints."""

    def __init__(self, start_ns: int) -> None:
        self.start_ns: int | None = start_ns
        self.stop_ns: int | None = None
        self.fields: dict[str, dict[str, Any]] = {}

    def line(self, keyword: str, fields: dict[str, Any]) -> None:
        self.fields[keyword] = fields


class Relay:
    """A relay in this process, which gets the messages of a source that is node 0."""

    def __init__(self, folder: Path, start_ns: int = 0, **changes: Any) -> None:
        values = chain_specs("loopback", 1, **changes)[1]
        self.folder, self.lines = folder, Lines(start_ns or time.monotonic_ns())
        self.kit = Kit(values, self.lines, 0, str(folder))  # type: ignore[arg-type]
        shape: Any = RecordPayload if self.kit.encoding == "record" else Payload
        self.payload = shape(values, [0])

    def message(self, counter: int, node: int = 0) -> Any:
        self.payload.stamp(node << 48 | counter, time.monotonic_ns())
        buffer = self.payload.buffer
        return buffer if self.kit.encoding == "record" else bytes(buffer)

    def forward(self, data: Any) -> bool:
        """Return whether the relay sends `data`, whose send call then succeeds."""
        forward = self.kit.relay(data)
        if forward is not None:
            self.kit.relayed(forward)
        return forward is not None

    def finish(self) -> tuple[dict[str, Any], list[tuple[int, ...]]]:
        """Return the fields of DONE and the records."""
        self.kit.finish()
        data = (self.folder / "samples.bin").read_bytes()
        return self.lines.fields["DONE"], list(RECORD.iter_unpack(data[64:]))


@pytest.mark.parametrize("shape", SHAPES)
def test_each_message_has_one_record_with_its_arrival_and_its_send_call(
    shape: str, tmp_path: Path
) -> None:
    relay = Relay(tmp_path, **SHAPES[shape])
    bounds = []
    for counter in range(3):
        message, before_ns = relay.message(counter), time.monotonic_ns()
        forward = relay.kit.relay(message)
        called_ns = time.monotonic_ns()
        assert forward is not None
        relay.kit.relayed(forward)
        bounds.append((before_ns, called_ns, time.monotonic_ns()))
    done, records = relay.finish()
    assert (done["received"], done["sent"], done["recorded"]) == (3, 3, 3)
    assert [record[0] for record in records] == [0, 1, 2]
    length = relay.payload.length
    assert {record[4:] for record in records} == {(length, 0, RELAY, 0)}
    for record, (before_ns, called_ns, after_ns) in zip(records, bounds, strict=True):
        arrival_ns, begin_ns, end_ns = record[1:4]
        assert before_ns <= arrival_ns <= begin_ns <= called_ns <= end_ns <= after_ns


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape != "record"])
@pytest.mark.parametrize("head", [b"", b"12345"])
def test_a_payload_is_read_within_a_longer_message(shape: str, head: bytes, tmp_path: Path) -> None:
    relay = Relay(tmp_path, **SHAPES[shape])
    receive = relay.kit.relay_within(head)
    for counter in range(3):
        forward = receive(head + relay.message(counter) + b"678")
        assert forward is not None
        relay.kit.relayed(forward)
    done, records = relay.finish()
    assert (done["foreign"], done["corrupt"], done["received"], done["sent"]) == (0, 0, 3, 3)
    assert [record[0] for record in records] == [0, 1, 2]
    assert {record[4:] for record in records} == {(relay.payload.length, 0, RELAY, 0)}


@pytest.mark.parametrize("shape", ["bytes", "header", "text", "long"])
def test_a_bad_payload_within_a_longer_message_is_flagged_or_foreign(
    shape: str, tmp_path: Path
) -> None:
    relay = Relay(tmp_path, **SHAPES[shape])
    receive, head = relay.kit.relay_within(b"12345"), b"12345"
    good = relay.message(1)
    bad = [head + good[:-1] + b"\xff678", head + good[:-1], b"1234_" + good[:-3]]
    for message in bad:  # altered, cut off, and with another length in its head
        forward = receive(message)
        assert forward is not None
        relay.kit.relayed(forward)
    assert receive(head + relay.message(2, node=7)) is None
    done, records = relay.finish()
    assert (done["foreign"], done["corrupt"], done["received"], done["sent"]) == (1, 3, 3, 3)
    assert [(record[0], record[7]) for record in records] == [(1, CORRUPT)] * 3
    lengths = [relay.payload.length - less for less in (0, 1, 3)]
    assert [record[4] for record in records] == lengths


@pytest.mark.parametrize("shape", ["bytes", "text", "record"])
def test_a_corrupt_arrival_is_sent_and_flagged_but_a_foreign_one_is_not_sent(
    shape: str, tmp_path: Path
) -> None:
    relay = Relay(tmp_path, **SHAPES[shape])
    assert not relay.forward(relay.message(0, node=7))
    corrupt = relay.message(1)
    if shape == "record":
        corrupt.trailer_seq ^= 1
    else:
        corrupt = corrupt[:-1] + b"\xff"
    assert relay.forward(corrupt)
    done, records = relay.finish()
    assert (done["foreign"], done["corrupt"], done["received"], done["sent"]) == (1, 1, 1, 1)
    assert [(record[0], record[6], record[7]) for record in records] == [(1, RELAY, CORRUPT)]


@pytest.mark.parametrize(("shape", "data"), [("bytes", b"abc"), ("record", UNREADABLE)])
def test_an_arrival_without_a_readable_sequence_is_sent_and_not_recorded(
    shape: str, data: Any, tmp_path: Path
) -> None:
    relay = Relay(tmp_path, **SHAPES[shape])
    assert relay.forward(data)
    done, records = relay.finish()
    assert (done["corrupt"], done["received"], done["sent"], records) == (1, 0, 1, [])


@pytest.mark.parametrize("shape", ["bytes", "short"])
def test_a_failed_send_is_recorded_without_an_end(shape: str, tmp_path: Path) -> None:
    relay = Relay(tmp_path, **SHAPES[shape])
    forward = relay.kit.relay(relay.message(0))
    assert forward is not None
    relay.kit.relay_failed(forward)
    done, records = relay.finish()
    assert (done["received"], done["sent"], done["recorded"]) == (1, 0, 1)
    assert [(record[3], record[7]) for record in records] == [(UNKNOWN, FAILED)]


def test_a_probe_is_sent_and_not_counted(tmp_path: Path) -> None:
    relay = Relay(tmp_path)
    for counter in (PROBE, 0, PROBE):
        assert relay.forward(relay.message(counter))
    done, records = relay.finish()
    assert (done["probes"], done["received"], done["sent"], len(records)) == (2, 1, 1, 1)


def test_a_message_without_a_sequence_before_the_start_is_a_probe(tmp_path: Path) -> None:
    relay = Relay(tmp_path, time.monotonic_ns() + 10**10, payload__bytes=5)
    assert relay.forward(relay.message(0))
    done, records = relay.finish()
    assert (done["probes"], done["received"], done["sent"], records) == (1, 0, 0, [])


@pytest.mark.parametrize("shape", ["bytes", "text"])
def test_arrivals_of_the_warm_up_are_flagged(shape: str, tmp_path: Path) -> None:
    for folder, warmup_ns, flags in (("in", 10**10, WARM_UP), ("after", 0, 0)):
        (tmp_path / folder).mkdir()
        relay = Relay(tmp_path / folder, warmup_ns=warmup_ns, **SHAPES[shape])
        for counter in range(2):
            relay.forward(relay.message(counter))
        assert [record[7] for record in relay.finish()[1]] == [flags, flags]


@pytest.mark.parametrize("relays", [0, 1, 3])
def test_a_pipeline_delivers_each_message_in_order(relays: int, tmp_path: Path) -> None:
    outcome = run_chain("loopback", ["python"] * (relays + 2), tmp_path)
    assert outcome.codes == [0] * (relays + 2)
    assert outcome.sent["sent"] == 50
    assert [done["received"] for done in outcome.done] == [0, *[50] * (relays + 1)]
    assert [done["sent"] for done in outcome.done] == [*[50] * (relays + 1), 0]
    for hop, records in enumerate(outcome.records):
        kind = RELAY if 0 < hop <= relays else MESSAGE
        assert [record[0] & COUNTER for record in records] == list(range(50))
        assert {record[6:] for record in records} == {(kind, 0)}
        assert {record[5] for record in records} == {0 if hop else 1}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_pipeline_carries_every_payload_unchanged(shape: str, tmp_path: Path) -> None:
    outcome = run_chain("loopback", ["python"] * 3, tmp_path, **SHAPES[shape])
    assert outcome.codes == [0, 0, 0]
    assert [done["recorded"] for done in outcome.done] == [50, 50, 50]
    assert {(done["foreign"], done["corrupt"]) for done in outcome.done} == {(0, 0)}


# A socket's buffer does not hold all long datagrams of a run if the reader gets no CPU time.
@pytest.mark.parametrize(
    ("middleware", "shape"),
    [("tcp", "long")]
    + [(m, s) for m in ("udp", "tcp") for s in ("bytes", "text", "empty", "literal")],
)
def test_pipelines_of_sockets_carry_every_payload(
    middleware: str, shape: str, tmp_path: Path
) -> None:
    outcome = run_chain(middleware, ["python"] * 4, tmp_path, **SHAPES[shape])
    assert outcome.codes == [0] * 4
    assert [done["recorded"] for done in outcome.done] == [50] * 4
    assert [done["sent"] for done in outcome.done] == [50, 50, 50, 0]
    assert {(done["foreign"], done["corrupt"]) for done in outcome.done} == {(0, 0)}
    for records in outcome.records[1:]:
        assert [record[0] & COUNTER for record in records] == list(range(50))


def test_a_source_with_a_timer_of_its_own_sends_messages(tmp_path: Path) -> None:
    window = {"phase_ns": 10_000_000, "period_ns": 10_000_000, "duration_ns": 310_000_000}
    outcome = run_chain("loopback", ["python"] * 2, tmp_path, pacing="native", **window)
    sent = [record[0] & COUNTER for record in outcome.records[0]]
    assert len(sent) == outcome.sent["sent"] > 0
    assert {record[6:] for record in outcome.records[0]} == {(MESSAGE, 0)}
    assert [record[0] & COUNTER for record in outcome.records[1]] == sent


def test_the_faults_of_a_sender_apply_to_a_relay(tmp_path: Path) -> None:
    planted = {1: {"drop_every": 7, "drop_counters": "0,20", "duplicate_every": 10}}
    outcome = run_chain("loopback", ["python"] * 4, tmp_path, planted)
    lost = {c for c in range(50) if c % 7 == 6} | {0, 20}
    twice = {c for c in range(50) if c % 10 == 9} - lost
    arrived = [record[0] & COUNTER for record in outcome.records[2]]
    assert sorted(arrived) == sorted([*(set(range(50)) - lost), *twice])
    assert [done["sent"] for done in outcome.done] == [50, 50, len(arrived), 0]


def node_error(changes: dict[str, Any]) -> Exception | None:
    """Return the error of a node that reads a relay's spec with `changes`."""
    declared = {
        "declared.roles": ["relay", "source"],
        "declared.capabilities": ["encoding.bytes", "loop.open"],
    }
    values = chain_specs("loopback", 1)[1] | declared | changes
    values = {key: value for key, value in values.items() if value is not None}
    try:
        read = parse_spec(json.dumps(values).encode(), "spec.json")
        check_declaration(read, ("relay", "source"))
    except (BadSpec, Unsupported) as error:
        return error
    return None


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"hop": None}, "hop"),
        ({"hop": "1"}, "hop"),
        ({"pattern": "topic"}, "hop"),
        ({"pattern": None}, "pattern"),
        ({"pattern": 7}, "pattern"),
    ],
)
def test_only_a_pipeline_has_a_hop(changes: dict[str, Any], key: str) -> None:
    error = node_error(changes)
    assert isinstance(error, BadSpec) and error.key == key


def test_a_pipeline_needs_no_reply_and_only_its_source_needs_pacing() -> None:
    assert node_error({}) is None
    error = node_error({"role": "source"})
    assert isinstance(error, Unsupported) and "pacing.kit" in str(error)
    assert isinstance(node_error({"loop": "closed"}), Unsupported)
