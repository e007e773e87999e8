"""Test that each request line gets one reply according to the protocol, and the agent survives."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.conftest import Cases
from tests.fuzz.mutate import Mutator
from wattwire.model.errors import WattwireError
from wattwire.rig.agent import find_agent

KINDS = {"usage", "protocol", "absent", "permission", "busy", "io", "failed"}
BATCH = 200
HANG_S = 120.0
BLANK = b" \t\r\n\f"
"""A line that contains only these characters gets no reply."""
# Requests that could affect other programs of this machine are excluded: `clean` and `build` are
# omitted, and `spawn` names a program that does not exist.
REQUESTS: tuple[dict[str, Any], ...] = (
    {"op": "have", "hashes": ["0" * 64]},
    {"op": "put", "hash": "0" * 64, "base64": "AAAA"},
    {"op": "ports", "count": 2},
    {"op": "write", "process": "none", "text": "STOP\n"},
    {"op": "write", "process": "none", "close": True},
    {"op": "signal", "process": "none", "signal": "TERM", "tree": False},
    {"op": "mark", "name": "go"},
    {"op": "sample_stop"},
    {"op": "clock", "count": 2},
    {"op": "fetch", "path": "nothing/here", "offset": 0, "bytes": 100},
    {"op": "hello", "protocol": 3, "state": "state"},
    {"op": "remove", "path": "/nothing/here"},
    {"op": "which", "names": ["sh", "/bin/sh"]},
    {"op": "connects", "address": "127.0.0.1", "port": 1, "timeout_ms": 10},
    {"op": "disk", "path": "/nothing/here"},
    {"op": "addresses"},
    {"op": "clock_listen", "address": "127.0.0.1", "exchanges": 1, "seconds": 0.1},
    {"op": "clock_close"},
    {"op": "spawn", "process": "p", "run": "fuzz0", "argv": 5, "env": {}, "stdout": "lines",
     "stderr": "err"},
)  # fmt: skip


class Agent:
    """An agent process with the lines that it prints."""

    def __init__(self, folder: Path) -> None:
        try:
            binary = find_agent()
        except WattwireError as error:
            pytest.skip(str(error))
        self.process = subprocess.Popen(
            [binary, "serve"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def ask(self, lines: list[bytes]) -> list[dict[str, Any]]:
        """Write the lines; return one reply for each line that is not blank, without events."""
        assert self.process.stdin is not None and self.process.stdout is not None
        guard = threading.Timer(HANG_S, self.process.kill)
        guard.daemon = True
        guard.start()
        self.process.stdin.write(b"".join(line + b"\n" for line in lines))
        self.process.stdin.flush()
        awaited = sum(bool(line.strip(BLANK)) for line in lines)
        replies = []
        while len(replies) < awaited:
            text = self.process.stdout.readline()
            assert text, f"the agent ended with {self.process.wait()}"
            said = json.loads(text)
            if "event" not in said:
                replies.append(said)
        guard.cancel()
        return replies

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.read()
        assert self.process.wait(HANG_S) == 0


def line(seed: int) -> bytes:
    mutator = Mutator(seed)
    request = {"id": seed, **mutator.random.choice(REQUESTS)}
    if mutator.random.random() < 0.6:
        changed = json.dumps(mutator.value(request), ensure_ascii=bool(seed % 2))
        found = changed.encode("utf-8", "replace")
    else:
        found = mutator.bytes(json.dumps(request).encode())
    return found.replace(b"\n", b" ").replace(b"\r", b" ")


def test_every_line_gets_one_reply_of_the_protocol(cases: Cases, tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    hello = {"id": 0, "op": "hello", "protocol": 2, "state": str(tmp_path / "state")}
    assert agent.ask([json.dumps(hello).encode()])[0]["ok"]
    seeds = list(cases(4_000))
    for first in range(0, len(seeds), BATCH):
        for reply in agent.ask([line(seed) for seed in seeds[first : first + BATCH]]):
            assert isinstance(reply["ok"], bool) and "id" in reply
            if not reply["ok"]:
                assert reply["error"]["kind"] in KINDS
                assert reply["error"]["message"]
    last = {"id": 1, "op": "clock", "count": 1}
    (reply,) = agent.ask([json.dumps(last).encode()])
    assert reply["ok"] and len(reply["triples"]) == 1
    agent.close()
