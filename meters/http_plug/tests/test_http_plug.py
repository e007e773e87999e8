"""Test the meter against emulated plugs on loopback HTTP."""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from meters.http_plug.tests.emulator import SHELLY, TASMOTA, Plug
from tests.sampled_meters import sampled_outside, sampling_agent
from wattwire.rig import AgentClient
from wattwire.rig.agent import AgentError
from wattwire.run.results import power
from wattwire.run.results.resources import Readings

NAME = "http_plug"
KINDS = ("shelly", "tasmota")


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[AgentClient]:
    with sampling_agent(tmp_path / "state") as client:
        yield client


@pytest.fixture
def plug() -> Iterator[Plug]:
    emulated = Plug(36.0)
    yield emulated
    emulated.close()


def sampled(agent: AgentClient, folder: Path, at: str, seconds: float, tick_hz: float = 10) -> Any:
    """Return the readings, the series and the reply of a sampling of the plug."""
    return sampled_outside(agent, folder, NAME, at, seconds, tick_hz)


@pytest.mark.parametrize("kind", KINDS)
def test_the_power_is_that_of_the_counter_and_the_plug_is_only_read(
    agent: AgentClient, tmp_path: Path, kind: str
) -> None:
    plug = Plug(36.0, step_wh=0.001 if kind == "shelly" else 0.01)
    try:
        frame, _, reply = sampled(agent, tmp_path, f"{kind}:127.0.0.1:{plug.port}", 9.0)
    finally:
        plug.close()
    counter = frame.filter(quantity="energy_input")
    times, values = counter["t_ns"].to_list(), counter["value"].to_list()
    assert len(times) >= 4
    watts = (values[-1] - values[0]) / 1e6 / ((times[-1] - times[0]) / 1e9)
    # A step of the counter, and how old each of the two values may be.
    delays_s = [d / 1e9 for d in frame.filter(quantity="delay", meter=NAME)["value"]]
    span_s = (times[-1] - times[0]) / 1e9
    bound_w = (plug.step_wh * 3600 + 36.0 * 2 * max(delays_s)) / span_s
    assert abs(watts - 36.0) <= bound_w
    sources = [s.name for s in power.sources(reply["series"])]
    assert f"{NAME}/energy_input" in sources and f"{NAME}/power_stated" not in sources
    assert set(plug.requests) == {SHELLY if kind == "shelly" else TASMOTA}
    readings = Readings(frame)
    source = next(s for s in power.sources(reply["series"]) if s.meter == NAME)
    assert power.mean_w(readings, source, (times[0], times[-1])) == pytest.approx(watts)


def test_a_counter_that_is_written_once_per_second_is_read_between_two_writes(
    agent: AgentClient, tmp_path: Path
) -> None:
    asked_s: list[float] = []

    def energy_j(now_s: float) -> float:
        asked_s.append(now_s)
        # 36 W, written each second at the phase of the first request.
        return 36.0 * math.floor(now_s - asked_s[0])

    plug = Plug(36.0, energy_j=energy_j)
    try:
        frame, _, _ = sampled(agent, tmp_path, f"shelly:127.0.0.1:{plug.port}", 4.5)
    finally:
        plug.close()
    counter = frame.filter(quantity="energy_input").sort("t_ns")
    ages_s = [(t_ns / 1e9 - asked_s[0]) % 1.0 for t_ns in counter["t_ns"].to_list()]
    # The first reading is the one after which the agent knew a write.
    assert len(ages_s) >= 3 and 0.25 <= statistics.median(ages_s[1:]) <= 0.75, ages_s


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ((401, b""), "the plug wants a password"),
        ((404, b"No handler"), "no Shelly of the second generation"),
        ((200, b"<html><title>Router</title></html>"), r"a page \(HTML\) instead of JSON"),
        ((200, b'{"id": 0, "aene'), "half an answer"),
        ((200, b'{"id": 0}'), "without one energy and one power"),
        ((200, b""), "half an answer"),
        ((500, b""), "500 Internal Server Error"),
    ],
)
def test_an_answer_without_a_reading_has_a_reason(
    agent: AgentClient, plug: Plug, answer: tuple[int, bytes], text: str
) -> None:
    plug.answer = answer
    with pytest.raises(AgentError, match=text):
        agent.request("meter_check", meter=NAME, at=f"shelly:127.0.0.1:{plug.port}")


def test_a_plug_that_is_not_there_has_a_reason(agent: AgentClient, plug: Plug) -> None:
    port = plug.port
    plug.close()
    with pytest.raises(AgentError, match="Connection refused"):
        agent.request("meter_check", meter=NAME, at=f"shelly:127.0.0.1:{port}")


@pytest.mark.parametrize(
    "at", ["192.168.1.20", "shelly:", "tasmota:plug/1", "shelly:plug/cm?cmnd=Power", "x:y"]
)
def test_an_address_has_a_kind_and_no_path(agent: AgentClient, at: str) -> None:
    with pytest.raises(AgentError, match="allowed: shelly:HOST"):
        agent.request("meter_check", meter=NAME, at=at)


def test_a_plug_that_hangs_costs_no_tick(agent: AgentClient, plug: Plug, tmp_path: Path) -> None:
    plug.hang_s = 30.0
    _, series, reply = sampled(agent, tmp_path, f"shelly:127.0.0.1:{plug.port}", 6.0, tick_hz=100)
    info = series["energy_input"]["info"]
    assert "no answer within 2 s" in str(info["fault_texts"]) and not info["answers"]
    assert "127.0.0.1" not in str(info)
    # The machine of a test may miss ticks of its own.
    assert reply["ticks"] > 0.5 * 600 and reply["busy_ns"] < 0.1 * 6e9
    assert info["thread_cpu_ns"] < 0.01 * 6e9


def test_a_check_answers_other_requests_meanwhile(agent: AgentClient, plug: Plug) -> None:
    plug.hang_s = 30.0
    at = f"shelly:127.0.0.1:{plug.port}"
    checked: list[str] = []

    def check() -> None:
        with pytest.raises(AgentError, match="no answer within 2 s"):
            agent.request("meter_check", meter=NAME, at=at)
        checked.append("")

    thread = threading.Thread(target=check)
    thread.start()
    agent.request("cpus")
    assert not checked
    thread.join()
    assert checked


def test_a_counter_that_was_reset_loses_one_reading(
    agent: AgentClient, plug: Plug, tmp_path: Path
) -> None:
    timer = threading.Timer(3.0, lambda: setattr(plug, "_began_s", time.monotonic() + 5000))
    timer.start()
    frame, series, _ = sampled(agent, tmp_path, f"shelly:127.0.0.1:{plug.port}", 7.0)
    info = series["energy_input"]["info"]
    assert info["lost"] == 1
    assert "the counter was reset" in str(info["fault_texts"])
    values = frame.filter(quantity="energy_input")["value"].to_list()
    assert values == sorted(values)
