"""Test exchanges with simulated agents, and with an agent in a time namespace."""

import os
import random
import shutil
import socket
import struct
import subprocess
import threading
import time

import pytest

from wattwire.hosts import clocks
from wattwire.model.hosts.clocks import ClockRelation
from wattwire.rig.agent import AgentClient, AgentError, find_agent

SECOND = 1_000_000_000


class SimulatedAgent:
    """An agent whose clock has an offset, behind a path with random and asymmetric delays."""

    def __init__(self, offset_ns, seed=1, least_ns=10_000, share_out=0.5):
        self.hello = {"boot_id": "far", "time_namespace": "time:[1]"}
        self.now_ns, self.offset_ns = 100 * SECOND, offset_ns
        self.requests, self._roll = [], random.Random(seed)
        self._least_ns, self._share_out = least_ns, share_out

    def monotonic_ns(self):
        return self.now_ns

    def request(self, operation, **arguments):
        self.requests.append(operation)
        if operation != "clock":
            raise AgentError(operation, "usage", "unknown")
        delay_ns = self._least_ns + round(self._roll.expovariate(1 / 90_000))
        self.now_ns += round(delay_ns * self._share_out)
        arrived_ns = self.now_ns + self.offset_ns
        self.now_ns += 700
        replied_ns = self.now_ns + self.offset_ns
        self.now_ns += delay_ns - round(delay_ns * self._share_out)
        return {"triples": [{"monotonic_ns": arrived_ns, "monotonic_after_ns": replied_ns}]}


@pytest.fixture
def simulated(monkeypatch):
    def start(*arguments, **named):
        agent = SimulatedAgent(*arguments, **named)
        monkeypatch.setattr(clocks.time, "monotonic_ns", agent.monotonic_ns)
        return agent

    return start


def after(agent, *changes, count=clocks.EXCHANGES):
    """Return the relation from exchanges before and after each of the `changes`."""
    comparison = clocks.ClockComparison(agent)
    comparison.exchange(count)
    for change in changes:
        change()
        comparison.exchange(count)
    return comparison.relation()


@pytest.mark.parametrize("share_out", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("offset_ns", [0, 1_000 * SECOND, -3 * SECOND])
def test_the_planted_offset_is_within_the_band(simulated, offset_ns, share_out):
    agent = simulated(offset_ns, share_out=share_out)
    comparison = clocks.ClockComparison(agent)
    comparison.exchange()
    relation = comparison.relation(is_complete=False)
    (knot,) = relation.knots
    assert abs(knot.offset_ns - offset_ns) <= relation.band_ns
    assert (relation.count, relation.way) == (64, "pipe")
    assert 10_000 <= relation.round_trip_ns < 100_000  # of the shortest of the 64


def test_the_relation_has_the_rate_from_exchanges_before_and_after_the_run(simulated):
    agent = simulated(5 * SECOND)

    def run():
        agent.now_ns += 60 * SECOND
        agent.offset_ns += 1_200_000  # 20 ppm

    relation = after(agent, run)
    assert relation.clock == "far time:[1]"
    assert [float(rate) for rate in relation.rates] == [pytest.approx(20e-6, abs=2e-6)]
    assert (relation.step_ns, relation.changes, relation.count) == (None, 0, 128)
    assert abs(relation.knots[-1].offset_ns - agent.offset_ns) <= relation.band_ns


def test_a_clock_that_was_set_back_is_detected(simulated):
    agent = simulated(5 * SECOND)

    def run():
        agent.now_ns += 10 * SECOND
        agent.offset_ns -= SECOND

    relation = after(agent, run)
    assert relation.step_ns == pytest.approx(-SECOND, abs=200_000)
    assert len(relation.knots) == 2, "the times of an invalid run are still related"


@pytest.mark.parametrize("count", [1, 8])
def test_few_exchanges_have_an_offset_and_show_a_step(simulated, count):
    agent = simulated(5 * SECOND)

    def run():
        agent.now_ns += 10 * SECOND
        agent.offset_ns -= SECOND

    assert len(after(agent, count=count).knots) == 1
    relation = after(agent, run, count=count)
    assert relation.step_ns == pytest.approx(-SECOND, abs=2_000_000)
    assert ClockRelation.from_json(relation.to_json()) == relation
    first, last = relation.knots
    assert first.controller_ns < last.controller_ns


def test_a_clock_that_slews_during_the_run_has_a_line_for_each_rate(simulated):
    agent = simulated(5 * SECOND)

    def passed(ppm):
        def change():
            agent.now_ns += SECOND
            agent.offset_ns += ppm * 1_000

        return change

    relation = after(agent, *[passed(0)] * 15, *[passed(40)] * 15, count=8)
    assert relation.changes == 1 and relation.step_ns is None
    rates_ppm = [float(rate) * 1e6 for rate in relation.rates]
    assert rates_ppm == [pytest.approx(0, abs=6), pytest.approx(40, abs=6)]


def test_a_host_with_the_controllers_clock_needs_no_exchange(simulated):
    agent = simulated(0)
    boot_id, namespace = clocks.own_clock().split(" ")
    agent.hello = {"boot_id": boot_id, "time_namespace": namespace}
    comparison = clocks.ClockComparison(agent)
    comparison.exchange()
    with comparison.continued(0.0):
        pass
    relation = comparison.relation()
    assert (relation.is_own, relation.band_ns, agent.requests) == (True, 0, [])


def test_the_pipe_is_used_where_the_host_does_not_answer_by_udp(simulated):
    agent = simulated(7 * SECOND)
    comparison = clocks.ClockComparison(agent, "127.0.0.1")
    comparison.exchange()
    assert comparison.way == "pipe"
    assert agent.requests[0] == "clock_listen"


class Responder:
    """An agent that answers datagrams as PROTOCOL.md describes, but not every one."""

    def __init__(self, offset_ns, losses):
        self.offset_ns, self._losses = offset_ns, set(losses)
        self._socket, self._is_bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), False
        self.hello = {"boot_id": "far", "time_namespace": "time:[1]"}

    def request(self, operation, **arguments):
        if operation == "clock_listen" and self._is_bound:
            return {"port": self._socket.getsockname()[1]}
        if operation == "clock_listen":
            self._is_bound = True
            self._socket.bind((arguments["address"], 0))
            threading.Thread(target=self._answer, daemon=True).start()
            return {"port": self._socket.getsockname()[1]}
        if operation == "clock":
            now_ns = time.monotonic_ns() + self.offset_ns
            return {"triples": [{"monotonic_ns": now_ns, "monotonic_after_ns": now_ns}]}
        assert operation == "clock_close"
        return {"closed": True}

    def _answer(self):
        while True:
            datagram, sender = self._socket.recvfrom(64)
            magic, number, *zeros = struct.unpack("<8sQqq", datagram)
            assert (magic, zeros) == (b"WWCLOCK1", [0, 0])
            now_ns = time.monotonic_ns() + self.offset_ns
            if number not in self._losses:
                reply = struct.pack("<8sQqq", magic, number, now_ns, now_ns)
                self._socket.sendto(b"x", sender)  # not a reply
                self._socket.sendto(reply, sender)


@pytest.mark.parametrize(
    ("losses", "way", "count"),
    [
        ((), "datagrams", 64),
        ((1, 5), "datagrams", 62),
        (range(3), "pipe", 64),
        (range(4, 13), "pipe", 64),
    ],
)
def test_datagrams_may_be_lost_but_not_too_many(losses, way, count):
    comparison = clocks.ClockComparison(Responder(-9 * SECOND, losses), "127.0.0.1")
    comparison.exchange()
    relation = comparison.relation(is_complete=False)
    assert (relation.way, relation.count) == (way, count)
    assert abs(relation.knots[0].offset_ns + 9 * SECOND) <= relation.band_ns


@pytest.mark.parametrize(("address", "way"), [("127.0.0.1", "datagrams"), ("", "pipe")])
def test_exchanges_continue_during_a_run_and_survive_lost_datagrams(address, way):
    comparison = clocks.ClockComparison(Responder(-9 * SECOND, [70, 71]), address)
    comparison.exchange()
    with comparison.continued(period_s=0.001):
        deadline_s = time.monotonic() + 30
        while len(comparison.exchanges) < 100 and time.monotonic() < deadline_s:
            time.sleep(0.01)
    count = len(comparison.exchanges)
    assert count >= 100
    assert not [t for t in threading.enumerate() if t.name == "clock-exchanges"]
    comparison.exchange()
    relation = comparison.relation()
    assert (relation.way, relation.count) == (way, count + 64)
    assert relation.run_round_trip_ns > relation.round_trip_ns
    assert abs(relation.offset_ns(time.monotonic_ns()) + 9 * SECOND) <= relation.band_ns + 1_000


def test_the_ends_of_the_line_are_those_of_the_run_although_datagrams_were_lost():
    comparison = clocks.ClockComparison(Responder(-9 * SECOND, [1, 5]), "127.0.0.1")
    comparison.exchange()
    with comparison.continued(period_s=0.001):
        wait_until(lambda: len(comparison.exchanges) >= 70)
    comparison.exchange()
    first, last = comparison.relation().knots
    assert first.controller_ns == pytest.approx(comparison.exchanges[61][0], abs=2)
    assert last.controller_ns == pytest.approx(comparison.exchanges[-62][3], abs=2)


class FreezingResponder(Responder):
    """An agent that answers the thread of the run only when it is thawed."""

    def __init__(self):
        super().__init__(-9 * SECOND, [])
        self.thawed = threading.Event()

    def request(self, operation, **arguments):
        reply = super().request(operation, **arguments)
        if threading.current_thread().name == "clock-exchanges":
            self.thawed.wait(30)
        return reply


def test_an_exchange_that_ends_after_the_run_is_discarded(monkeypatch):
    monkeypatch.setattr(clocks, "END_S", 0.05)
    agent = FreezingResponder()
    comparison = clocks.ClockComparison(agent)
    comparison.exchange()
    with comparison.continued(period_s=0.001):
        time.sleep(0.05)
    comparison.exchange()
    agent.thawed.set()
    wait_until(lambda: "clock-exchanges" not in [t.name for t in threading.enumerate()])
    assert len(comparison.exchanges) == 128
    assert comparison.exchanges == sorted(comparison.exchanges)


def wait_until(is_true):
    deadline_s = time.monotonic() + 30
    while not is_true():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def in_time_namespace():
    argv = ["unshare", "--time", "--monotonic", "1000", "--boottime", "1000", "--fork"]
    if os.geteuid():
        argv[1:1] = ["--user", "--map-root-user"]
    can = shutil.which("unshare") and subprocess.run([*argv, "true"], check=False).returncode == 0
    return argv if can else None


def test_the_offset_of_a_time_namespace_is_found(tmp_path):
    prefix = in_time_namespace()
    if prefix is None:
        pytest.skip("time namespaces need CAP_SYS_ADMIN or user namespaces")
    agent = AgentClient(tmp_path, command=[*prefix, str(find_agent()), "serve"])
    try:
        comparison = clocks.ClockComparison(agent)
        comparison.exchange()
        with comparison.continued(period_s=0.01):
            time.sleep(0.3)
        comparison.exchange()
        relation = comparison.relation()
    finally:
        agent.close()
    assert relation.count > 128
    assert all(abs(knot.offset_ns - 1_000 * SECOND) <= knot.band_ns for knot in relation.knots)
