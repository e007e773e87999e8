"""Test that a pair is lost if a peer of a bench hangs or fails, and the bench continues."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench import pairs
from wattwire.rig import bare_clients

HANGS = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture(autouse=True)
def lost(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    lost: list[str] = []
    monkeypatch.setattr(pairs, "lost_pairs", lost)
    yield lost


def test_a_client_that_hangs_costs_its_pair_and_the_rest_goes_on(lost: list[str]) -> None:
    calls = iter(range(4))

    def peer() -> float:
        return bare_clients.printed_ns(HANGS, timeout_s=0.2) if next(calls) == 1 else 2.0

    ours, theirs = pairs.abba("cell against bare", lambda: 1.0, peer, 4)
    assert (ours, theirs) == ((1.0,) * 3, (2.0,) * 3)
    assert lost == ["cell against bare, pair 2 of 4: no end within 0.2 s"]


def test_a_server_that_prints_nothing_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bare_clients, "START_S", 0.2)
    with pytest.raises(RuntimeError, match="printed no line"), bare_clients.bare_server(HANGS):
        pass


def test_a_bare_server_ends_with_a_killed_bench() -> None:
    hangs = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    bench = (
        "import sys, time; from wattwire.rig.bare_clients import bare_server\n"
        f"with bare_server([sys.executable, '-c', {hangs!r}]) as line:\n"
        "    print(line, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", bench], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        server = int(process.stdout.readline())
        process.kill()
    deadline_s = time.monotonic() + 30
    while Path(f"/proc/{server}/exe").exists() and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert not Path(f"/proc/{server}/exe").exists()


def test_a_client_that_fails_gives_its_reason() -> None:
    program = [sys.executable, "-c", "import sys; sys.exit('no reply to call 3')"]
    with pytest.raises(RuntimeError, match="exit 1: no reply to call 3"):
        bare_clients.printed_ns(program)


def test_a_comparison_of_which_every_pair_is_lost_is_absent(lost: list[str]) -> None:
    def hang() -> float:
        raise subprocess.TimeoutExpired("bare", 60)

    sides = pairs.abba("cell against bare", lambda: 1.0, hang, 3)
    assert list(pairs.compared("cell against bare", "ns", sides, 1.05)) == []
    assert len(lost) == 3


def test_three_sides_alternate_their_order_and_lose_a_round_together(lost: list[str]) -> None:
    order: list[str] = []

    def side(name: str, values: list[float]) -> Callable[[], float]:
        def measure() -> float:
            order.append(name)
            value = values[order.count(name) - 1]
            if value < 0:
                raise RuntimeError("no end")
            return value

        return measure

    sides = [side("a", [1, 2, 3]), side("b", [4, -1, 5]), side("c", [6, 7, 8])]
    # The second round ends at b, so a has no value in it.
    assert pairs.interleaved("three", sides, 3) == ((1, 2), (4, 5), (6, 8))
    assert order == ["a", "b", "c", "c", "b", "a", "b", "c"]
    assert lost == ["three, pair 2 of 3: no end"]
