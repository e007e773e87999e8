"""Which process a publisher belongs to, and its CPU time per message."""

from __future__ import annotations

from typing import Any

from wattwire.run.exec.watched_topics import cpu_per_message, pid_of

MODULUS = 1 << 16


def member(pid: int, *argv: str) -> dict[str, Any]:
    return {"pid": pid, "argv": argv}


def numbered(pid: int, node: str = "/talker") -> dict[str, Any]:
    return {"node": node, "process": {"pid": pid, "modulus": MODULUS}}


def test_the_lower_bits_of_a_number_find_a_process_if_they_fit_only_one() -> None:
    members = [member(7), member(MODULUS + 8)]
    assert pid_of(numbered(7), members) == 7
    assert pid_of(numbered(8), members) == MODULUS + 8
    assert pid_of(numbered(9), members) is None
    assert pid_of(numbered(8), [*members, member(8)]) is None


def test_without_a_number_the_command_line_that_names_the_node_decides() -> None:
    talker = member(7, "talker", "--ros-args", "-r", "__node:=talker", "-r", "__ns:=/left")
    fact = {"node": "/left/talker", "process": None}
    assert pid_of(fact, [talker, member(8, "talker")]) == 7
    assert pid_of({**fact, "node": "/talker"}, [talker]) is None
    assert pid_of(fact, [talker, {**talker, "pid": 9}]) is None
    # A number that fits no measured process is that of another one, whatever its node's name.
    assert pid_of(numbered(9, "/left/talker"), [talker]) is None


def end(pid: int | None, messages: int) -> dict[str, Any]:
    return {"pid": pid, "messages": messages}


def test_cpu_per_message_counts_what_a_process_publishes_and_what_it_receives() -> None:
    document = {"streams": [end(1, 100), end(2, 60), end(None, 5)], "readers": [end(2, 100)]}
    rows = [
        {"pid": 1, "process": "talker", "cpu_s": 0.001},
        {"pid": 2, "process": "python3 relay.py", "cpu_s": 0.016},
        {"pid": 3, "process": "idle", "cpu_s": 1.0},
        {"process": "(outside the scans)", "cpu_s": 1.0},
    ]
    figures = cpu_per_message(document, rows)
    assert figures == {
        "talker_cpu_per_message_us": 10.0, "python3_relay_py_cpu_per_message_us": 100.0
    }  # fmt: skip
    twice = [*rows, {"pid": 4, "process": "talker", "cpu_s": 1.0}]
    more = {**document, "streams": [*document["streams"], end(4, 10)]}
    assert "talker_cpu_per_message_us" not in cpu_per_message(more, twice)
