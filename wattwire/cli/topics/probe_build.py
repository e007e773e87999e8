"""Build the probe that watches a system, and write it into a request to measure."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from wattwire.catalog import Catalog, Probe
from wattwire.cli.screen import PlainProgress
from wattwire.model.deployment import Request
from wattwire.model.errors import UsageError
from wattwire.rig import AgentClient, Builder, CellBuild, cache
from wattwire.run.probing.watching import WatchRequest, environment_of

WARM_UP_S = 3.0
"""Least time (s) in which the probe finds the publishers, before the window."""


@contextmanager
def probe_agent() -> Iterator[tuple[AgentClient, str]]:
    """Yield an agent for a probe outside of a campaign, and a folder that ends with it."""
    cache.folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    attempts = cache.folder() / "attempts"  # an agent removes its own folders from there
    attempts.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="topics-", dir=attempts) as state:
        agent = AgentClient(Path(state))
        try:
            agent.request("folder", path=state)  # it ends with the agent, also if wattwire dies
            yield agent, state
        finally:
            agent.close()


def built(agent: AgentClient, probe: Probe) -> CellBuild:
    """Return the build of a probe, whose steps standard error shows."""
    progress = PlainProgress(sys.stderr)
    return Builder(agent, lambda step: progress.event("building", **asdict(step))).cell(probe)


def chosen_probe(catalog: Catalog, name: str | None = None) -> Probe:
    """Return the requested probe, or the only one. Raises UsageError if none or several exist."""
    if name is None and len(catalog.probes) != 1:
        known = ", ".join(sorted(catalog.probes)) or "none"
        raise UsageError(
            f"topics: found {len(catalog.probes)} probes ({known}); choose one with --probe"
        )
    return catalog.probe(name or next(iter(catalog.probes)))


def checked_patterns(patterns: Sequence[str], option: str) -> Sequence[str]:
    """Return the patterns of topics. Raises UsageError for an empty one."""
    for pattern in patterns:
        if not pattern.strip():
            raise UsageError(
                f"{option}: found {pattern!r}; allowed: a name, or a pattern such as '/a*'"
            )
    return patterns


def with_probe(request: Request, build: CellBuild, topics: WatchRequest) -> Request:
    """Return the request with a probe that watches these topics.

    The window begins after the probe has found the publishers.
    """
    has_warm_up = request.warms_up
    return replace(
        request,
        probe=build.cell.name,
        probe_command=tuple(topics.command(build)),
        probe_env=tuple(f"{name}={value}" for name, value in environment_of(build).items()),
        warmup_s=request.warmup_s if has_warm_up else WARM_UP_S,
    )
