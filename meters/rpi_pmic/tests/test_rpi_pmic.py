"""Test the meter against programs that answer as vcgencmd does, and as it does without a right."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.sampled_meters import sampled_outside, sampling_agent
from wattwire.rig import AgentClient
from wattwire.rig.agent import AgentError
from wattwire.run.results import power

NAME = "rpi_pmic"
ANSWER = Path(__file__).parents[1] / "fixtures" / "answers" / "0" / "answer"
POWER_UW = 2_204_060.0
HANG = 'tail -f "$0"; true'
"""A program whose child has its path among its arguments, too."""


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[AgentClient]:
    with sampling_agent(tmp_path / "state") as client:
        yield client


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], str]:
    """Return a function that writes a program of shell commands, and returns its path."""

    def write(commands: str) -> str:
        path = tmp_path / "vcgencmd"
        path.write_text(f"#!/bin/sh\n{commands}\n")
        path.chmod(0o755)
        return str(path)

    return write


def running(path: str) -> list[int]:
    """Return the processes with this path among their arguments."""
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:  # the process has ended
            continue
        if path.encode() in arguments:
            pids.append(int(folder.name))
    return pids


def until_ended(path: str) -> bool:
    deadline_s = time.monotonic() + 10
    while running(path) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    return not running(path)


def test_the_power_is_the_sum_of_the_rails_and_no_source_of_energy(
    agent: AgentClient, program: Callable[[str], str], tmp_path: Path
) -> None:
    arguments = tmp_path / "arguments"
    at = program(f'echo "$@" > {shlex.quote(str(arguments))}; cat {shlex.quote(str(ANSWER))}')
    frame, series, reply = sampled_outside(agent, tmp_path, NAME, at, 2.5, 10)
    read = frame.filter(quantity="power_rails")["value"].to_list()
    assert len(read) >= 2 and read == pytest.approx([POWER_UW] * len(read))
    assert arguments.read_text() == "pmic_read_adc\n"
    delays = frame.filter(quantity="delay", meter=NAME)["value"]
    assert delays.min() > 0
    info = series["power_rails"]["info"]
    assert info["faults"] == 0 and "VDD_CORE" in info["rails"] and "EXT5V" not in info["rails"]
    assert not [s for s in power.sources(reply["series"]) if NAME in s.name]


@pytest.mark.parametrize(
    ("commands", "text"),
    [
        ("echo 'VCHI initialization failed' >&2; exit 255", "code 255.*usermod -aG video"),
        ('echo "Can\'t open device file: /dev/vcio" >&2; exit 1', "code 1.*usermod -aG video"),
        ("exit 3", "ended with code 3"),
        ("kill -9 $$", "ended with a signal"),
        ("echo 'error=1 error_msg=\"Command not registered\"'", "is it a Raspberry Pi 5"),
        (f"head -c 300 {shlex.quote(str(ANSWER))}", "no reading"),
        (":", "without a current"),
        ("yes noise", "no answer within 2 s"),
    ],
)
def test_a_program_that_fails_has_a_reason(
    agent: AgentClient, program: Callable[[str], str], commands: str, text: str
) -> None:
    at = program(commands)
    with pytest.raises(AgentError, match=text) as caught:
        agent.request("meter_check", meter=NAME, at=at)
    assert at not in str(caught.value)
    assert until_ended(at)


def test_a_program_that_hangs_costs_no_tick_and_is_ended(
    agent: AgentClient, program: Callable[[str], str], tmp_path: Path
) -> None:
    at = program(HANG)
    _, series, reply = sampled_outside(agent, tmp_path, NAME, at, 4.0, 100)
    info = series["power_rails"]["info"]
    assert "no answer within 2 s" in str(info["fault_texts"]) and not info["answers"]
    # The machine of a test may miss ticks of its own.
    assert reply["ticks"] > 0.5 * 400
    assert until_ended(at)


def test_a_killed_agent_leaves_no_program(program: Callable[[str], str], tmp_path: Path) -> None:
    at = program(HANG)
    with sampling_agent(tmp_path / "state") as agent:
        agent.request(
            "sample_start", path=str(tmp_path / "a.bin"), tick_hz=10, meters=[NAME], subjects={},
            addresses={NAME: at},
        )  # fmt: skip
        deadline_s = time.monotonic() + 10
        while len(running(at)) < 2 and time.monotonic() < deadline_s:
            time.sleep(0.01)
        assert len(running(at)) == 2
        os.kill(agent.pid, 9)
    assert until_ended(at)


def test_an_address_that_is_no_program_has_a_reason(agent: AgentClient, tmp_path: Path) -> None:
    (tmp_path / "a" / "vcgencmd").mkdir(parents=True)
    (tmp_path / "vcgencmd").write_text("")
    for at, text in (
        ("/none/vcgencmd", "package raspi-utils"),
        (str(tmp_path / "a" / "vcgencmd"), "no program that can be executed"),
        (str(tmp_path / "vcgencmd"), "no program that can be executed"),
        ("/bin/sh", "allowed: the path of vcgencmd"),
    ):
        with pytest.raises(AgentError, match=text):
            agent.request("meter_check", meter=NAME, at=at)
