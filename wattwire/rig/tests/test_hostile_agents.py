"""Test that the output of a far host is bounded, and that its messages are validated."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wattwire.model.errors import AgentLostError, UsageError
from wattwire.rig import agent as agent_module
from wattwire.rig.agent import AgentClient, AgentError
from wattwire.rig.agent_pipe import LINE_BYTES_MAX, LOG_BYTES_MAX, READ_BYTES, AgentPipe
from wattwire.rig.messages import message_problem

HANG_S = 60.0
HELLO = {
    "id": 1, "ok": True, "protocol": 2, "version": "0", "build": "0", "pid": 7, "boot_id": "b",
    "time_namespace": "", "cache": "/c", "cgroup": {"rung": "none", "path": None, "lost": []},
    "rights": {}, "meters": [], "cpu_latency": {"path": "/dev/x", "absent": "no device"},
}  # fmt: skip
SERVING = f"""
import json, sys, time
def say(line):
    sys.stdout.write(line + "\\n")
    sys.stdout.flush()
input()
say({json.dumps(HELLO)!r})
input()
"""


@pytest.fixture
def clients() -> Iterator[list[AgentClient]]:
    started: list[AgentClient] = []
    yield started
    for client in started:
        client.close(0.0)


def client_of(code: str, folder: Path, clients: list[AgentClient]) -> AgentClient:
    """Return the client of a program that acts as the agent of a far host."""
    command = [sys.executable, "-c", code]
    client = AgentClient(folder, Path(sys.executable), command, "far", lambda pipe: "/c")
    clients.append(client)
    return client


@pytest.mark.parametrize(
    "line",
    ["[]", "7", '{"id": [1], "ok": true}', '{"id": {}, "ok": true}', '{"id": 2}', '{"event": []}',
     '{"event": "line", "process": []}', '{"event": "exit", "process": "p", "code": "0"}',
     '{"id": 2, "ok": false, "error": "x"}', '{"id": 2, "ok": false, "error": {"kind": []}}',
     "[" * 100_000],
)  # fmt: skip
def test_a_line_against_the_protocol_ends_the_agent_at_once(line, tmp_path, clients):
    code = SERVING + f"say({line!r})\ntime.sleep(1000)"
    client = client_of(code, tmp_path, clients)
    with pytest.raises(AgentLostError):
        client.request("clock", reply_timeout_s=HANG_S, count=1)
    assert client.lost.is_set(), "the request waited until its own deadline"


@pytest.mark.parametrize("key", sorted(HELLO.keys() - {"id", "ok"}))
def test_a_hello_without_a_key_is_refused_with_the_key(key, tmp_path):
    hello = {name: value for name, value in HELLO.items() if name != key}
    code = f"input(); print({json.dumps(hello)!r}, flush=True); input()"
    with pytest.raises(AgentError, match=key) as error:
        AgentClient(tmp_path, Path(sys.executable), [sys.executable, "-c", code])
    assert error.value.kind == "protocol"


def test_a_line_without_end_ends_the_agent_in_bounded_memory(tmp_path, clients):
    code = SERVING + "while True: sys.stdout.write('x' * 1000000)"
    client = client_of(code, tmp_path, clients)
    with pytest.raises(AgentLostError, match=f"{LINE_BYTES_MAX:,} bytes"):
        client.request("clock", reply_timeout_s=HANG_S, count=1)
    assert len(client._pipe._unread) <= LINE_BYTES_MAX + READ_BYTES


def test_a_path_that_is_no_text_is_refused_at_once(tmp_path):
    folder = tmp_path / os.fsdecode(b"\xff")
    with pytest.raises(UsageError, match="UTF-8"):
        AgentClient(folder, Path(sys.executable), [sys.executable, "-c", SERVING])


def test_a_reply_to_no_request_ends_the_agent_instead_of_a_wait(tmp_path, clients):
    refusal = {"id": None, "ok": False, "error": {"kind": "protocol", "message": "too long"}}
    code = SERVING + f"say({json.dumps(refusal)!r})\ntime.sleep(1000)"
    client = client_of(code, tmp_path, clients)
    with pytest.raises(AgentLostError, match="too long"):
        client.request("clock", reply_timeout_s=HANG_S, count=1)


def test_a_silent_agent_is_lost_so_that_another_one_replaces_it(tmp_path, clients):
    client = client_of(SERVING + "time.sleep(1000)", tmp_path, clients)
    with pytest.raises(AgentLostError, match="no reply"):
        client.request("clock", reply_timeout_s=0.1, count=1)
    assert client.lost.is_set()
    with pytest.raises(AgentLostError, match="no reply"):
        client.request("mark", reply_timeout_s=HANG_S, name="x")


def test_a_flood_of_events_ends_the_agent(tmp_path, clients, monkeypatch):
    monkeypatch.setattr(agent_module, "EVENTS_MAX", 1000)
    event = json.dumps({"event": "line", "process": "node", "t_ns": 1, "text": "x"})
    client = client_of(SERVING + f"while True: say({event!r})", tmp_path, clients)
    events: queue.Queue[dict[str, Any]] = queue.Queue()
    client.subscribe("node", events)
    with pytest.raises(AgentLostError, match="events"):
        client.request("clock", reply_timeout_s=HANG_S, count=1)
    assert events.qsize() < 1010


def test_endless_messages_fill_no_disk(tmp_path):
    code = "import sys\nfor _ in range(40): sys.stderr.write('x' * 1000000)"
    pipe = AgentPipe([sys.executable, "-c", code], tmp_path / "log", is_far=True)
    assert pipe.wait(HANG_S) == 0
    assert len("".join(pipe.messages())) == LOG_BYTES_MAX
    pipe.close(0.0)
    assert (tmp_path / "log").stat().st_size == LOG_BYTES_MAX


def test_a_killed_connection_leaves_no_command_of_its_own(tmp_path):
    script = "sleep 1000 & echo $!; wait"
    pipe = AgentPipe(["sh", "-c", script], tmp_path / "log", is_far=True)
    child = Path("/proc", pipe.read_line(HANG_S).decode().strip())
    pipe.close(0.0)
    deadline_s = time.monotonic() + HANG_S
    while (child / "exe").exists() and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert not (child / "exe").exists()


def test_a_deadline_of_a_line_holds_while_bytes_arrive(tmp_path):
    pipe = AgentPipe(["sh", "-c", "while :; do printf x; done"], tmp_path / "log")
    with pytest.raises(TimeoutError):
        pipe.read_line(0.2)
    pipe.close(0.0)


def test_the_last_message_follows_the_end_of_the_output(tmp_path):
    pipe = AgentPipe(
        ["sh", "-c", "exec >&-; sleep 0.3; echo gone >&2"], tmp_path / "log", is_far=True
    )
    assert pipe.read_line() == b""
    assert pipe.messages() == ["gone"]
    pipe.close(5)


def test_a_removed_log_has_no_messages(tmp_path):
    pipe = AgentPipe(["true"], tmp_path / "log")
    (tmp_path / "log").unlink()
    assert pipe.wait(HANG_S) == 0
    assert pipe.messages() == []
    pipe.close(0.0)


@pytest.mark.parametrize(
    "message",
    [HELLO, {"id": None, "ok": False, "error": {"kind": "usage", "message": "x"}},
     {"event": "exit", "process": "p", "code": None, "signal": 9}, {"event": "later"}],
)  # fmt: skip
def test_messages_of_the_protocol_have_no_problem(message):
    assert message_problem(message) == ""


INTERRUPTED = """
import os, signal, sys, threading
from pathlib import Path
import polars
from wattwire.rig.agent_pipe import AgentPipe
pipe = AgentPipe(["sleep", "1000"], Path(sys.argv[1]))
try:
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    pipe.read_line()
except KeyboardInterrupt:
    print("interrupted")
finally:
    pipe.close(0.0)
"""


def test_ctrl_c_interrupts_a_wait_after_polars_is_imported(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path / "log")],
        check=False, capture_output=True, text=True, timeout=HANG_S,
    )  # fmt: skip
    assert done.stdout == "interrupted\n", done.stderr
