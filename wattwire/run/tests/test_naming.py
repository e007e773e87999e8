"""Test the names of processes, and the message counts from their output."""

from __future__ import annotations

import pytest

from wattwire.analysis.responses import resolve
from wattwire.model.errors import UsageError
from wattwire.model.metrics import find
from wattwire.run.exec.naming import process_name
from wattwire.run.exec.output import MessageCounter, Tail, ValueReader


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["/opt/x/lib/talker", "--ros-args", "-r", "__node:=front"], "front"),
        (["/opt/x/lib/talker", "-r", "__ns:=/left", "-r", "__node:=camera"], "left/camera"),
        (["container", "-r", "a:__node:=one", "-r", "b:__node:=two"], "one+two"),
        (["/usr/bin/python3", "-u", "/srv/my_node.py", "x"], "python3 my_node.py"),
        (["python3.11", "-m", "http.server"], "python3.11 -m http.server"),
        (["bash", "-c", "secret"], "bash -c"),
        (["-bash"], "bash"),
        (["/usr/sbin/broker", "-c", "x.conf"], "broker"),
        ([], "kworker/0"),
    ],
)
def test_a_process_is_called_by_its_node_its_script_or_its_program(argv, name):
    assert process_name(argv, "kworker/0") == name


def test_a_total_an_amount_and_a_match_count_differently():
    lines = ["sent 1,000", "sent 2,500", "idle"]
    expected = {r"sent (?P<n>[\d,]+)": 2500, r"sent (?P<add>[\d,]+)": 3500, "sent": 2}
    for expression, count in expected.items():
        counter = MessageCounter(expression)
        assert counter.count is None
        for line in lines:
            counter.line(line)
        assert counter.count == count


def test_a_group_that_holds_no_number_is_named_and_ends_the_count():
    counter = MessageCounter(r"(?P<n>\w+) messages")
    for line in ("3 messages", "idle messages", "5 messages"):
        counter.line(line)
    assert "group n matched 'idle'" in counter.problem
    assert counter.count is None


def test_a_log_is_followed_in_pieces_and_its_bound_is_noticed(tmp_path):
    path, shown = tmp_path / "log", bytearray()
    counter = MessageCounter("x")
    tail = Tail(path, shown.extend, [counter])
    tail.take()
    path.write_bytes(b"one x\ntwo ")
    tail.take()
    assert counter.count == 1
    with path.open("ab") as file:
        file.write(b"x\n\n[wattwire: 9 more bytes were left out]\nlast x")
    tail.end()
    assert counter.count == 3 and tail.truncated
    assert bytes(shown) == path.read_bytes()


def test_the_last_value_of_a_printed_figure_counts_and_its_name_gives_its_unit():
    reader = ValueReader(["p50_ms", r"rate: (?P<rate_per_s>[\d,]+)"])
    for line in ('{"p50_ms": 9.5}', "p50_ms=4.56 xp50_ms=7", "rate: 12,000"):
        reader.line(line)
    assert reader.values == {"p50_ms": 4.56, "rate_per_s": 12000.0}
    units = {name: figure.unit for name in reader.values if (figure := find(f"value.{name}"))}
    assert units == {"p50_ms": "ms", "rate_per_s": "1/s"}
    assert resolve("value.rate_per_s").more_is_better
    assert not resolve("value.p50_ms").more_is_better
    assert resolve("value.qps").more_is_better
    assert not resolve("value.errors_per_s").more_is_better
    assert not resolve("value.score").more_is_better, "a lower value is better by default"
    for expression in ("(", "no group in here"):
        with pytest.raises(UsageError, match="--value-from"):
            ValueReader([expression])


def test_messages_of_the_warm_up_are_not_counted():
    counter = MessageCounter(r"sent (?P<n>\d+)")
    counter.line("sent 30", 1.0)
    counter.restart()
    assert counter.count is None and counter.totals(0.1) is None
    counter.line("sent 50", 2.0)
    assert counter.count == 20
