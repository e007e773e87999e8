"""Start an agent of this machine for commands that measure nothing."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from wattwire.model.errors import WattwireError
from wattwire.rig import AgentClient


@contextlib.contextmanager
def agent_here() -> Iterator[AgentClient | None]:
    """Yield an agent and close it afterwards. Yield None if no agent can be started."""
    with starting_agent() as agent:
        yield agent()


@contextlib.contextmanager
def starting_agent() -> Iterator[Callable[[], AgentClient | None]]:
    """Yield a function that waits for an agent, which starts in the meantime.

    An agent takes a tenth of a second if it has to wait for energy counters that never count. The
    function returns None if no agent can be started. The agent is closed afterwards.
    """
    with (
        tempfile.TemporaryDirectory(prefix="wattwire-plan-") as state,
        ThreadPoolExecutor(1, thread_name_prefix="wattwire-agent") as starter,
    ):
        started = starter.submit(_agent, Path(state))
        try:
            yield started.result
        finally:
            agent = started.result()  # waits: the timeout of the agent's first request
            if agent is not None:
                agent.close()


def _agent(state: Path) -> AgentClient | None:
    try:
        return AgentClient(state)
    except WattwireError:
        return None
