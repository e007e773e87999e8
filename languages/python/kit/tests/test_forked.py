"""A server that forks reports the messages of all its processes in one DONE."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path
from typing import Any

import pytest
from pairs import spec
from wattwire_kit import Kit, forked
from wattwire_kit.payload import Payload

MESSAGES = (7, 5)
"""Number of requests that each process answers."""


class Lines:
    """The dialogue of a node after GO; it keeps the fields of the lines that the node prints."""

    def __init__(self) -> None:
        self.start_ns: int | None = time.monotonic_ns()
        self.stop_ns: int | None = None
        self.fields: dict[str, dict[str, Any]] = {}

    def line(self, keyword: str, fields: dict[str, Any]) -> None:
        self.fields[keyword] = fields


def serve(kit: Kit, processes: forked.Processes, number: int, requests: list[bytes]) -> int:
    """Answer the requests in a forked process; return its exit code."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            processes.enter(number)
            for request in requests:
                processes.serve(request)
                kit.served()
            processes.leave()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_done_counts_every_arrival_of_every_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The children close the descriptor of the dialogue.
    monkeypatch.setattr(forked, "LINES", os.open(os.devnull, os.O_RDONLY))
    lines = Lines()
    values = spec("service", "server", 1, [2])
    kit = Kit(values, lines, time.monotonic_ns(), str(tmp_path))  # type: ignore[arg-type]
    sender = Payload(spec("service", "client", 2, [1]), [2])
    processes = forked.Processes(kit)
    counters = itertools.count()
    for number, count in enumerate(MESSAGES):
        requests = []
        for counter in itertools.islice(counters, count):
            sender.stamp(2 << 48 | counter, time.monotonic_ns())
            requests.append(bytes(sender.buffer))
        assert serve(kit, processes, number, requests) == 0
    processes.collect()
    kit.finish()
    done = lines.fields["DONE"]
    assert (done["received"], done["recorded"]) == (sum(MESSAGES), sum(MESSAGES))
    assert (done["foreign"], done["corrupt"], done["overflow"]) == (0, 0, 0)
