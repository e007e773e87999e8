"""Test the meter against an emulated Watts Up? Pro on a pseudo-terminal."""

from __future__ import annotations

import os
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from meters.watts_up.tests.emulator import WattsUp
from tests.sampled_meters import sampled_outside, sampling_agent
from wattwire.rig import AgentClient
from wattwire.rig.agent import AgentError, find_agent

NAME = "watts_up"
LISTENING_S = 1.3


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[AgentClient]:
    with sampling_agent(tmp_path / "state") as client:
        yield client


@pytest.fixture
def meter() -> Iterator[WattsUp]:
    emulated = WattsUp(lambda now_s: 40.0 + int(now_s * 10) % 7 / 10, interval_s=0.1)
    yield emulated
    emulated.close()


def sampled(agent: AgentClient, folder: Path, at: str, seconds: float, tick_hz: float = 10) -> Any:
    """Return the readings, the series and the reply of a sampling of the meter and a fast one.

    `seconds` is the time after the agent has listened for a meter that was left sending.
    """
    return sampled_outside(agent, folder, NAME, at, LISTENING_S + seconds, tick_hz)


def powers_w(frame: Any) -> list[float]:
    return [v / 1e6 for v in frame.filter(quantity="power_input")["value"].to_list()]


def test_every_record_of_the_meter_is_a_reading_in_its_resolution(
    agent: AgentClient, meter: WattsUp, tmp_path: Path
) -> None:
    frame, series, _ = sampled(agent, tmp_path, meter.path, 2.0)
    read = powers_w(frame)
    assert len(read) >= 10
    # The last record may have come after the last reading.
    assert read == pytest.approx(meter.sent_w[: len(read)])
    delays = frame.filter(quantity="delay", meter=NAME)["value"]
    assert delays.min() >= 1e9
    assert series["power_input"]["info"]["faults"] == 0


def test_the_meter_is_left_as_it_was_found(
    agent: AgentClient, meter: WattsUp, tmp_path: Path
) -> None:
    terminal = os.open(meter.path, os.O_RDWR | os.O_NOCTTY)
    attributes = termios.tcgetattr(terminal)
    attributes[4] = attributes[5] = termios.B9600
    termios.tcsetattr(terminal, termios.TCSANOW, attributes)
    attributes = termios.tcgetattr(terminal)
    sampled(agent, tmp_path, meter.path, 0.5)
    deadline_s = time.monotonic() + 5
    while meter.stored_interval != 7 and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert termios.tcgetattr(terminal) == attributes
    os.close(terminal)
    assert not meter.is_logging and meter.stored_interval == 7
    assert meter.commands == [b"#S,R,0;", b"#L,W,3,E,,1;", b"#L,W,0;", b"#S,W,2,,7;"]


def test_a_meter_that_hangs_costs_no_tick(
    agent: AgentClient, meter: WattsUp, tmp_path: Path
) -> None:
    meter.is_hanging = True
    frame, series, reply = sampled(agent, tmp_path, meter.path, 5.0, tick_hz=100)
    assert not powers_w(frame)
    assert "no record within 3 s" in str(series["power_input"]["info"]["fault_texts"])
    assert "no record within 3 s" in series["power_input"]["info"]["open_fault"]
    # The thread sleeps; the machine of a test may miss ticks of its own.
    assert reply["ticks"] > 0.5 * 500 and reply["busy_ns"] < 0.1 * 6e9
    assert series["power_input"]["info"]["thread_cpu_ns"] < 0.01 * 5e9


def test_noise_and_half_a_record_cost_only_themselves(
    agent: AgentClient, meter: WattsUp, tmp_path: Path
) -> None:
    meter.raw = [b"\xfe\xffnoise", b"#d,-,18,421,23", b"#d,-,2,421,2304;"]
    frame, series, _ = sampled(agent, tmp_path, meter.path, 1.0)
    read, info = powers_w(frame), series["power_input"]["info"]
    assert read == pytest.approx(meter.sent_w[: len(read)]) and len(read) >= 4
    assert info["faults"] == 3 and "open_fault" not in info
    for text in ("noise on the line", "half a record", "2 fields; allowed: 18"):
        assert text in str(info["fault_texts"])


def test_an_unplugged_meter_is_a_fault_and_not_the_end(agent: AgentClient, tmp_path: Path) -> None:
    meter = WattsUp(lambda _: 10.0, interval_s=0.1)
    path = tmp_path / "readings.bin"
    agent.request(
        "sample_start", path=str(path), tick_hz=10, meters=[NAME], subjects={},
        addresses={NAME: meter.path},
    )  # fmt: skip
    time.sleep(0.5)
    meter.close()
    time.sleep(1.0)
    info = agent.request("sample_stop")["series"][0]["info"]
    assert "is the meter unplugged?" in str(info["fault_texts"])
    assert "is the meter unplugged?" in info["open_fault"]


def test_a_meter_that_hung_is_not_left_logging(
    agent: AgentClient, meter: WattsUp, tmp_path: Path
) -> None:
    agent.request(
        "sample_start", path=str(tmp_path / "a.bin"), tick_hz=10, meters=[NAME], subjects={},
        addresses={NAME: meter.path},
    )  # fmt: skip
    deadline_s = time.monotonic() + 10
    while len(meter.sent_w) < 2 and time.monotonic() < deadline_s:
        time.sleep(0.01)
    meter.is_hanging = True
    time.sleep(3.25)  # the sampling ends in the pause after the fault
    info = agent.request("sample_stop")["series"][0]["info"]
    assert "no record within 3 s" in str(info["fault_texts"])
    assert meter.path not in str(info)
    deadline_s = time.monotonic() + 5
    while meter.is_logging and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert not meter.is_logging


def test_a_fault_is_short_and_its_text_has_no_control_character(
    agent: AgentClient, tmp_path: Path
) -> None:
    meter = WattsUp(lambda _: 10.0, interval_s=0.1)
    meter.raw = [b"#d,-,2,\x1b[31m" + b"9" * 230 + b",1;"]
    try:
        _, series, _ = sampled(agent, tmp_path, meter.path, 1.0)
    finally:
        meter.close()
    texts = series["power_input"]["info"]["fault_texts"]
    assert texts and all(len(text) <= 200 and text.isprintable() for text in texts)


def test_a_meter_that_was_left_sending_is_named(
    agent: AgentClient, meter: WattsUp, tmp_path: Path
) -> None:
    meter.is_logging = True
    time.sleep(0.3)
    _, series, _ = sampled(agent, tmp_path, meter.path, 1.0)
    assert "sending already" in series["power_input"]["info"]["was_logging"]


def test_a_killed_agent_leaves_the_meter_sending_and_the_next_one_says_so(
    meter: WattsUp, tmp_path: Path
) -> None:
    first = AgentClient(tmp_path / "first")
    first.request(
        "sample_start", path=str(tmp_path / "a.bin"), tick_hz=10, meters=[NAME], subjects={},
        addresses={NAME: meter.path},
    )  # fmt: skip
    deadline_s = time.monotonic() + 10
    while len(meter.sent_w) < 3 and time.monotonic() < deadline_s:
        time.sleep(0.01)
    os.kill(first.pid, 9)
    first.close()
    second = AgentClient(tmp_path / "second")
    try:
        _, series, _ = sampled(second, tmp_path, meter.path, 1.0)
    finally:
        second.close()
    assert "sending already" in series["power_input"]["info"]["was_logging"]
    assert not meter.is_logging


def test_an_agent_that_ends_during_a_check_stops_the_meter(
    agent: AgentClient, meter: WattsUp
) -> None:
    meter.is_hanging = True
    agent.submit("meter_check", meter=NAME, at=meter.path)
    deadline_s = time.monotonic() + 10
    while not meter.is_logging and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert meter.is_logging
    agent.close()
    deadline_s = time.monotonic() + 5
    while meter.stored_interval != 7 and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert not meter.is_logging and meter.stored_interval == 7


@pytest.mark.parametrize(
    ("at", "text"),
    [
        ("/dev/ttyUSB_none", "no such device; serial devices over USB here:"),
        ("/dev/null", "is no serial device"),
        ("/dev/watchdog", "no such device|is no serial device"),
        ("/dev", "is no serial device"),
        ("ttyUSB0", "allowed: the path of a serial device"),
    ],
)
def test_an_address_that_is_no_meter_has_a_reason(agent: AgentClient, at: str, text: str) -> None:
    with pytest.raises(AgentError, match=text):
        agent.request("meter_check", meter=NAME, at=at)


def test_another_kind_of_device_is_said_to_be_one(agent: AgentClient) -> None:
    end, slave = os.openpty()
    try:
        with pytest.raises(AgentError, match="is it a Watts Up"):
            agent.request("meter_check", meter=NAME, at=os.ttyname(slave))
    finally:
        os.close(slave)
        os.close(end)


def test_a_meter_that_another_program_reads_is_refused(
    agent: AgentClient, meter: WattsUp, tmp_path: Path
) -> None:
    agent.request(
        "sample_start", path=str(tmp_path / "a.bin"), tick_hz=10, meters=[NAME], subjects={},
        addresses={NAME: meter.path},
    )  # fmt: skip
    with pytest.raises(AgentError, match="another program reads this meter"):
        agent.request("meter_check", meter=NAME, at=meter.path)
    agent.request("sample_stop")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a program of another user")
def test_without_a_right_to_the_device_its_group_is_named(meter: WattsUp) -> None:
    os.chmod(meter.path, 0o600)
    program = (
        "import json, subprocess, sys, tempfile\n"
        f"agent, at = {str(find_agent())!r}, {meter.path!r}\n"
        "p = subprocess.Popen([agent, 'serve'], stdin=-1, stdout=-1, text=True,\n"
        "    env={'WATTWIRE_CACHE': tempfile.mkdtemp(), 'PATH': '/usr/bin:/bin'})\n"
        "ask = lambda **q: print(json.dumps(q), file=p.stdin, flush=True)\n"
        "ask(id=1, op='hello', protocol=2, state=tempfile.mkdtemp())\n"
        "ask(id=2, op='meter_check', meter='watts_up', at=at)\n"
        "lines = [p.stdout.readline() for _ in range(2)]\n"
        "p.stdin.close(); p.wait()\n"
        "print(*lines)\n"
    )
    python = "/usr/bin/python3"
    output = subprocess.run(
        [python, "-c", program], capture_output=True, text=True, user=65534, group=65534,
        extra_groups=[], cwd="/", timeout=60, check=False,
    )  # fmt: skip
    assert "which belongs to the group" in output.stdout, output.stderr
    assert "sudo usermod -aG" in output.stdout
