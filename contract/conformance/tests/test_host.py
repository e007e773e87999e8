"""Records and lines of hosts with clocks of their own, on the clock of the suite."""

from contract.conformance.host import HERE, Place, waiting_per_core
from contract.conformance.roles import CALL, FEEDBACK, MESSAGE, RELAY
from contract.conformance.samples import UNKNOWN_NS, Record, converted

AHEAD_NS = 1_000_000_000_000
FAR = Place("far", ("nsenter",), AHEAD_NS, "10.0.0.2", "native")


def record(kind, intended_ns, begin_ns, end_ns):
    return Record(1 << 48, intended_ns, begin_ns, end_ns, 64, 1, kind, 0)


def times(converted_record):
    return converted_record.intended_ns, converted_record.begin_ns, converted_record.end_ns


def test_the_send_time_of_a_received_message_is_of_the_senders_clock():
    received = record(MESSAGE, UNKNOWN_NS, 5, AHEAD_NS + 7)
    assert times(converted(received, FAR, HERE)) == (UNKNOWN_NS, 5, 7)
    feedback = record(FEEDBACK, UNKNOWN_NS, AHEAD_NS + 5, 7)
    assert times(converted(feedback, HERE, FAR)) == (UNKNOWN_NS, 5, 7)


def test_calls_and_relayed_messages_are_of_the_nodes_own_clock():
    for kind in (CALL, RELAY):
        own = record(kind, AHEAD_NS + 1, AHEAD_NS + 2, UNKNOWN_NS)
        assert times(converted(own, FAR, HERE)) == (1, 2, UNKNOWN_NS)


def test_waiting_processes_are_counted_per_core(tmp_path, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    loadavg = tmp_path / "loadavg"
    loadavg.write_text("0.51 0.40 0.30 6/412 1234\n")
    assert waiting_per_core(loadavg) == 3.0
    loadavg.write_text("8.50 0.40 0.30 6/412 1234\n")
    assert waiting_per_core(loadavg) == 4.25
    assert waiting_per_core(tmp_path / "absent") == 0.0
