"""An agent that samples meters, for the tests of a meter's folder."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from wattwire.model.deployment import Deployment
from wattwire.model.errors import MissingError
from wattwire.rig import AgentClient
from wattwire.rig.agent import find_agent
from wattwire.run.results.convert import quantities_frame


@contextlib.contextmanager
def sampling_agent(folder: Path) -> Iterator[AgentClient]:
    """Yield an agent whose files are in `folder`. Skip the test if no agent was built."""
    try:
        find_agent()
    except MissingError as reason:
        pytest.skip(str(reason))
    client = AgentClient(folder)
    yield client
    client.close()


def sampled_outside(
    agent: AgentClient, folder: Path, name: str, at: str, seconds: float, tick_hz: float
) -> tuple[pl.DataFrame, dict[str, Any], Any]:
    """Sample a meter at an address for a time (s), next to a fast meter of the machine.

    Return the readings, quantity → series of the meter, and the agent's reply.
    """
    path = folder / "readings.bin"
    agent.request(
        "sample_start", path=str(path), tick_hz=tick_hz, meters=["fake", name], subjects={},
        addresses={name: at},
    )  # fmt: skip
    time.sleep(seconds)
    reply = agent.request("sample_stop")
    frame = quantities_frame("run", Deployment(()), path, reply["series"])
    return frame, {s["quantity"]: s for s in reply["series"] if s["meter"] == name}, reply
