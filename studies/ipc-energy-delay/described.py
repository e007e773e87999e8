"""Describe the imported campaign's study and machine, in the format of a study's document."""

from __future__ import annotations

from typing import Any

import polars as pl

from .naming import IPC_TITLES, LANGUAGE_TITLES, PLATFORM_TITLES
from .observed import IPCS, LANGUAGES, PLATFORMS

RESPONSES = ("energy_j.client.0", "energy_j.server.0", "elapsed_s.client.0")
RESOURCES = ("memory_max_kib", "faults_minor", "switches_voluntary")
MACHINE: dict[str, Any] = {
    "hosts": {
        "intel": {"facts": [{"key": "cpu_name", "value": "two Lenovo ThinkCentre M910t"}]},
        "arm": {"facts": [{"key": "cpu_name", "value": "two Raspberry Pi 3B"}]},
    },
    "meter": "Watts Up? Pro at the mains of one of the two machines, one sample a second",
}


def study(runs: pl.DataFrame) -> dict[str, Any]:
    """The study's document for the runs that are there: factors hold the levels seen."""
    factors = {
        "platform": _seen(runs, "platform", PLATFORMS),
        "middleware": _seen(runs, "middleware", IPCS),
        "language": _seen(runs, "language", LANGUAGES),
    }
    varied = [name for name in ("middleware", "language") if len(factors[name]) > 1]
    resources = [f"{stem}.{role}.0" for stem in RESOURCES for role in ("client", "server")]
    there = set(runs.columns)
    return {
        "name": "ipc-energy-delay",
        "title": "Energy and delay of remote calls in seven languages (imported)",
        "source": "10.1016/j.jss.2019.110506",
        "published": "published.csv",
        "goal": {
            "object": "implementations of gRPC, RPC and REST in seven languages",
            "purpose": "find out which of them cost least energy and time",
            "focus": "energy of the client's and of the server's machine, elapsed time, memory, "
            "page faults and context switches",
            "viewpoint": "people who choose a language and a technology for remote calls",
            "context": "two machines, 20,000 (Intel) or 5,000 (ARM) calls that answer Hello World",
        },
        "question": [
            {
                "id": "RQ1",
                "text": "Which implementation takes the least energy and time?",
                "factors": varied,
                "responses": [name for name in RESPONSES if name in there],
            },
            {
                "id": "RQ3",
                "text": "Does energy go with elapsed time, memory, page faults, context switches?",
                "factors": varied,
                "responses": [name for name in resources if name in there],
            },
        ],
        "factors": factors,
        "titles": {
            "platform": PLATFORM_TITLES,
            "middleware": IPC_TITLES,
            "language": LANGUAGE_TITLES,
        },
        "fixed": {},
        "plan": {"primary": "middleware", "blocks": runs["block"].n_unique()},
        "answers": {
            "baseline": {
                name: level
                for name, level in (("middleware", "grpc"), ("language", "go"))
                if level in factors[name]
            },
            "family": "the answers to RQ1 and RQ3, together",
            "margin": 0.05,
        },
    }


def _seen(runs: pl.DataFrame, factor: str, order: tuple[str, ...]) -> list[str]:
    seen = set(runs[f"factor.{factor}"].to_list())
    return [level for level in order if level in seen]
