"""Test the services of a run: their readiness, their facts and their counters."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import sys

import pytest

from wattwire.catalog import Catalog, home
from wattwire.hosts.hosts import here
from wattwire.model.deployment import HOST, Deployment
from wattwire.model.study import parse_study
from wattwire.model.verdict import PORT_IN_USE, Verdict
from wattwire.rig import AgentClient
from wattwire.run import failed_start, services
from wattwire.run.network import HOST_ADDRESS
from wattwire.run.resolve_cells import prepare
from wattwire.run.run_processes import NodeEndedError, RunProcesses, port_hint
from wattwire.run.services import (
    AFTER,
    BEFORE,
    CounterReader,
    Service,
    endpoint_words,
    parse_counters,
    start_service,
    uses_counters,
)

BROKER = """
import os, socket, sys
print("broker 2.1 of", sys.argv[1], flush=True)
listener = socket.create_server((sys.argv[2], int(sys.argv[3])))
while True:
    listener.accept()
"""
LINE = r"^(?P<program>\w+) (?P<version>[\d.]+) of"


@pytest.fixture
def processes(tmp_path):
    with contextlib.closing(AgentClient(tmp_path / "agent")) as agent:
        (tmp_path / "run" / "logs").mkdir(parents=True)
        started = RunProcesses({HOST: here(agent)}, Deployment(()), "wwt0", tmp_path / "run")
        try:
            yield started
        finally:
            started.end_all()


PLACED = """
[patterns.topic]
[settings.via]
type = "string"
default = "direct"
allowed = ["direct", "router"]
[services.router]
argv = ["no-such-router"]
requires = ["no-such-router"]
when = {settings.via = "router"}
"""


def test_a_missing_program_skips_only_the_treatments_that_need_its_service(tmp_path):
    folder = tmp_path / "middleware" / "routed"
    (folder / "python").mkdir(parents=True)
    (folder / "middleware.toml").write_text(PLACED)
    node = 'patterns = ["topic"]\n'
    node += 'capabilities = ["encoding.bytes", "pacing.kit", "loop.open"]\n'
    (folder / "python" / "node.toml").write_text(node)
    document = {
        "factors": {"settings.via": ["direct", "router"]},
        "fixed": {"cell": "routed/python", "pattern": "topic", "rate_hz": 10},
    }
    prepared = prepare(parse_study("s", document, "s.toml"), Catalog([tmp_path, home()]), None)
    assert [treatment.settings["via"] for treatment in prepared.treatments] == ["direct"]
    ((skipped, reason),) = prepared.skipped
    assert skipped.settings["via"] == "router"
    assert "the router of routed: no-such-router is not on PATH" in reason


def started(processes, ready, argv=("{port}",), **table):
    script = {"files": {"broker.py": BROKER}, "ports": 1, "ready": ready}
    command = [
        sys.executable,
        "{out}/broker.py",
        "{environment}-{settings.qos}",
        "{address}",
        *argv,
    ]
    common = {"environment": "BUILT", "settings.qos": "2"}
    whole = {"argv": command, "endpoints": ["{address}:{port}"], **script, **table}
    return start_service(processes, "broker", whole, HOST_ADDRESS, "wwt0", 30.0, common)


def test_every_condition_holds_when_a_service_is_ready_and_its_line_gives_facts(processes):
    service = started(processes, {"line": LINE, "port": "{port}"})
    assert service.facts == {"program": "broker", "version": "2.1"}
    _, port = service.endpoints[0].split(":")
    assert processes.host_of("broker").serves(HOST_ADDRESS, int(port))
    assert any("of BUILT-2" in text for text in processes.logs_of("broker"))


def test_a_service_that_prints_its_line_but_opens_no_port_is_not_ready(processes):
    with pytest.raises(NodeEndedError, match="ended with code 1 before it was ready"):
        started(processes, {"line": LINE, "port": "{port}"}, argv=("no-port",))


def test_a_service_gets_the_endpoint_of_an_earlier_service(processes):
    earlier = started(processes, {"line": LINE})
    words = endpoint_words([earlier, Service("silent", [])])
    assert words == {"services.broker": earlier.endpoints[0]}
    table = {
        "argv": ["sh", "-c", "cat {out}/f; exec sleep 60"],
        "files": {"f": "at {services.broker}\n"},
        "ready": {"line": "^at (?P<endpoint>.*)$"},
    }
    facts = start_service(processes, "reader", table, HOST_ADDRESS, "wwt0", 30.0, words).facts
    assert facts == {"endpoint": earlier.endpoints[0]}


TAKES = "import socket, sys; socket.socket().bind((sys.argv[1], int(sys.argv[2])))"


def test_a_port_in_use_is_named_with_the_way_to_its_holder(processes):
    with socket.create_server(("127.0.0.1", 0)) as holder:
        argv = [sys.executable, "-c", TAKES, "127.0.0.1", str(holder.getsockname()[1])]
        table = {"argv": argv, "ports": 2, "ready": {"line": "never"}}
        with pytest.raises(NodeEndedError) as ended:
            start_service(processes, "broker", table, HOST_ADDRESS, "wwt0", 30.0)
    assert "ss -tulpn" in str(ended.value)
    assert re.search(r"its ports: \d+, \d+", str(ended.value))
    assert port_hint("listen tcp: bind: address already in use") != ""
    assert port_hint("no route to host") == ""


def test_a_start_at_a_taken_port_is_failed_and_names_the_port_and_its_holder(processes):
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        argv = [sys.executable, "-c", TAKES, "127.0.0.1", str(port)]
        table = {"argv": argv, "ready": {"line": "never"}}
        with pytest.raises(NodeEndedError) as ended:
            start_service(processes, "broker", table, HOST_ADDRESS, "wwt0", 30.0)
        found = failed_start.reasons(processes, ended.value.process, ended.value.problem)
    assert found and {reason.code for reason in found} == {PORT_IN_USE}
    assert all(reason.verdict is Verdict.FAILED for reason in found)
    assert f"port {port} is in use" in found[0].detail
    if shutil.which("ss"):
        assert f"(process {os.getpid()})" in found[0].detail


COUNTING = "import sys; print('{\"taken\": %s}' % sys.argv[1])"
STAYS = """
import itertools, os, sys
for number in itertools.count():
    print('{"pid": %d, "reading": %d}' % (os.getpid(), number), end="\\n\\n", flush=True)
    if not sys.stdin.readline():
        break
"""


@pytest.fixture
def service(processes):
    """Return a function that makes a service with a command, and the reader of its counters."""
    readers = []

    def made(*command):
        made_service = Service("broker", [], counters=command)
        readers.append(CounterReader(processes, made_service))
        return made_service, readers[-1]

    yield made
    for reader in readers:
        reader.close()


@pytest.mark.parametrize(
    ("command", "reading"),
    [
        ([sys.executable, "-c", COUNTING, "7"], {"taken": 7}),
        ([sys.executable, "-c", "print('a_b 3'); print('c 1.5')"], {"a_b": 3, "c": 1.5}),
    ],
)
def test_counters_are_what_their_command_prints(service, command, reading):
    counted, reader = service(*command)
    reader.read(BEFORE)
    reader.read(AFTER)
    assert counted.readings == {BEFORE: reading, AFTER: reading}


def test_a_command_that_stays_serves_every_reading_and_ends_with_its_input(service, processes):
    counted, reader = service(sys.executable, "-c", STAYS)
    reader.read(BEFORE)
    reader.read(AFTER)
    before, after = counted.readings[BEFORE], counted.readings[AFTER]
    assert before["pid"] == after["pid"] and (before["reading"], after["reading"]) == (0, 1)
    reader.close()
    assert not os.path.exists(f"/proc/{before['pid']}")
    assert processes.end_all() == []


def test_a_command_that_ends_between_the_readings_is_started_again(service):
    code = "print('a 3', end='\\n\\n', flush=True)"
    counted, reader = service(sys.executable, "-c", code)
    reader.read(BEFORE)
    reader.read(AFTER)
    assert counted.readings == {BEFORE: {"a": 3}, AFTER: {"a": 3}}


def test_a_command_that_fails_leaves_a_reason_and_no_counters(service):
    counted, reader = service(sys.executable, "-c", "raise SystemExit('no broker')")
    reader.read(BEFORE)
    assert counted.readings[BEFORE]["absent"] == "the command ended with code 1: no broker"
    missing, reader = service("/no/such/program")
    reader.read(AFTER)
    assert "/no/such/program" in missing.readings[AFTER]["absent"]
    assert missing.counted == {}
    assert json.loads(json.dumps(missing.to_json()))["counters"] == missing.readings


def test_a_command_that_prints_no_complete_reading_is_ended(service, processes, monkeypatch):
    monkeypatch.setattr(services, "COUNTERS_S", 1.0)
    counted, reader = service(sys.executable, "-c", "print('a 3', flush=True); input(); input()")
    reader.read(BEFORE)
    assert "no complete reading in 1 s" in counted.readings[BEFORE]["absent"]
    assert processes.end_all() == []


def test_the_growth_of_a_counter_needs_both_readings_and_no_reset():
    readings = {BEFORE: {"a": 5, "b": 9, "c": 1}, AFTER: {"a": 12, "b": 2, "d": 4}}
    assert Service("broker", [], readings=readings).counted == {"a": 7}
    assert Service("broker", [], readings={BEFORE: {"a": 5}}).counted == {}


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ("", "printed no counter"),
        ("{'a': 1}", "the last line is no JSON object"),
        ('{"a": "x"}', "found the counter 'a' = 'x'; allowed"),
        ('{"a": true}', "found the counter 'a' = True; allowed"),
        ('{"a.b": 1}', "found the counter 'a.b' = 1; allowed"),
        ('{"a": -1}', "found the counter 'a' = -1; allowed"),
        ("a 1\nbroker started", "found the counter 'broker' = 'started'; allowed"),
        ("a nan", "found the counter 'a' = nan; allowed"),
    ],
)
def test_output_that_is_no_counter_is_refused_with_the_entry(output, problem):
    with pytest.raises(ValueError, match=problem):
        parse_counters(output)


def test_only_a_study_that_names_a_counter_uses_counters():
    named = "service_counter.broker.messages_dropped"
    assert uses_counters({"question": [{"responses": ["lost", named]}]})
    assert uses_counters({"limit": [{"response": named, "max": 0}]})
    assert not uses_counters({"question": [{"responses": ["lost"]}], "title": "service_counter"})
