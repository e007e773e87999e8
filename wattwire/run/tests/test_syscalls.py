"""Test the methods of counting system calls, and the responses computed from the counts."""

from __future__ import annotations

import polars as pl
import pytest

from wattwire.run.results import syscalls

TABLE = """\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 75.00    0.000030           3        10         2 recvfrom
 25.00    0.000010           1         5           futex
------ ----------- ----------- --------- --------- ----------------
100.00    0.000040           2        15         2 total
"""


def hello(state="present", rung="v2", reason="no right"):
    meter = {"name": "m", "state": state, "reason": reason, "quantities": [{"name": "x"}]}
    counts = {**meter, "name": "counter", "quantities": [{"name": syscalls.CALLS}]}
    return {"meters": [meter, counts], "cgroup": {"rung": rung}}


def with_strace(monkeypatch, there):
    found = "/usr/bin/strace" if there else None
    monkeypatch.setattr(syscalls.shutil, "which", lambda name: found)


def test_the_meter_is_found_by_what_it_counts_and_used_where_it_can_read(monkeypatch):
    with_strace(monkeypatch, there=True)
    assert syscalls.choose(hello()) == syscalls.Way("ebpf", meter="counter")
    refused = syscalls.choose(hello(state="absent"))
    assert (refused.name, refused.meter, refused.because) == ("strace", "", "no right")
    other = syscalls.choose(hello(rung="v1"))
    assert other.name == "strace" and "v1" in other.because


def test_without_meter_and_without_strace_there_is_no_way_and_a_reason(monkeypatch):
    with_strace(monkeypatch, there=False)
    way = syscalls.choose(hello(state="absent"))
    assert way.name == "" and way.because == "no right, and strace is not installed"
    assert syscalls.choose({"meters": [], "cgroup": {"rung": "v2"}}).name == ""


def test_the_table_of_strace_is_read_with_and_without_errors():
    assert syscalls.parse_table(TABLE) == {
        "recvfrom": [10.0, pytest.approx(30_000.0), 2.0],
        "futex": [5.0, pytest.approx(10_000.0), 0.0],
    }
    assert syscalls.parse_table("strace: ptrace: Operation not permitted\n") == {}


def test_a_process_without_a_table_is_left_out(tmp_path):
    (tmp_path / "out" / "client-0").mkdir(parents=True)
    (tmp_path / "out" / "client-0" / syscalls.TABLE).write_text(TABLE)
    found = syscalls.from_tables(tmp_path, ["client-0", "server-0"])
    assert set(found) == {"client-0"}
    assert found["client-0"]["kernel_ns"] == pytest.approx(40_000.0)


def readings(rows):
    frame = pl.DataFrame(rows, schema=["t_ns", "quantity", "subject", "value"], orient="row")
    return frame.with_columns(meter=pl.lit("counter"))


def test_only_what_lies_between_the_two_marks_counts_and_a_new_call_counts_from_zero():
    rows = [
        (t_ns, quantity, "client-0", value)
        for t_ns, value in ((10, 0.0), (20, 1e6), (30, 4e6))
        for quantity in ("syscalls_uncounted", "cpu_time_kernel", "cpu_time_user")
    ]
    rows += [
        (20, "syscall_calls", "client-0/read", 7.0),
        (30, "syscall_calls", "client-0/read", 9.0),
    ]
    rows += [
        (30, "syscall_calls", "client-0/futex", 4.0),
        (30, "syscall_time", "client-0/futex", 8.0),
    ]
    rows += [(20, "syscall_calls", "client-0/brk", 2.0), (30, "syscall_calls", "client-0/brk", 2.0)]
    rows += [(40, "syscall_calls", "client-0/futex", 400.0)]
    found = syscalls.from_readings(readings(rows), "counter", (15, 25), ["client-0", "server-0"])
    assert set(found) == {"client-0"}, "of the other process nothing was read"
    assert found["client-0"]["calls"] == {"read": [2.0, 0.0, 0.0], "futex": [4.0, 8.0, 0.0]}
    assert found["client-0"]["kernel_ns"] == 3e6


def test_a_process_that_was_born_after_the_first_mark_counts_from_its_birth():
    rows = [(30, "syscalls_uncounted", "p", 0.0), (30, "syscall_calls", "p/read", 5.0)]
    found = syscalls.from_readings(readings(rows), "counter", (15, 25), ["p"])
    assert found["p"]["calls"] == {"read": [5.0, 0.0, 0.0]}
    assert syscalls.from_readings(readings(rows), "counter", (15, 35), ["p"]) == {}


def test_responses_are_per_message_and_waiting_is_told_from_working():
    calls = {"futex": [4.0, 6_000.0, 0.0], "write": [2.0, 2_000.0, 0.0]}
    told = {"calls": calls, "uncounted": 0, "kernel_ns": 3_000.0, "user_ns": 1_000.0}
    row = syscalls.responses({"client-0": told}, sent=2)
    assert row == {
        "syscalls_per_message.client.0": 3.0,
        "syscall_working_us_per_message.client.0": 1.0,
        "syscall_waiting_us_per_message.client.0": 3.0,
        "syscall_waiting_share.client.0": 0.75,
        "kernel_us_per_message.client.0": 1.5,
        "kernel_share.client.0": 0.75,
    }
    nothing = syscalls.responses({"client-0": {"calls": {}, "uncounted": 0}}, sent=0)
    assert set(nothing.values()) == {None}
