"""Scenarios for security: admitted peers, and peers that a node must not admit (C-43)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..cell import EXPIRED, OTHER_ADDRESS, OTHER_AUTHORITY, Problem, Security, Skipped
from ..group import HANG_S
from ..process import NodeProcess
from ..roles import PATTERNS
from ..scenario import ALWAYS, Bench, Scenario
from ..spec import READY_TIMEOUT_MS
from ..usage import refusal
from ..wire import await_line

Keys = dict[str, Any]


def _security_of(bench: Bench) -> Security:
    """Return how the cell is secured. Raise Skipped if it does not support security."""
    security = bench.cell.security
    if security is None:
        raise Skipped("the middleware has no setting with the role security")
    if bench.cell.excluded.get(security.setting) == "on":
        raise Skipped("the manifest excludes security for this cell")
    if security.absent:
        raise Skipped(security.absent)
    return security


def _switch(security: Security, level: str) -> Keys:
    return {f"settings.{security.setting}": level}


def admitted(pattern: str) -> Scenario:
    """Check a whole run between secured nodes."""

    def check(bench: Bench) -> list[Problem]:
        security = _security_of(bench)
        issue = security.issuer()
        keys = {**_switch(security, "on"), **issue(bench.folder / "node", "")}
        with security.service(issue(bench.folder / "service", "")) as endpoints:
            return Bench(bench.cell, bench.folder, endpoints).whole_run(pattern, keys)

    return Scenario(f"secured[{pattern}]", ("C-43", *ALWAYS), check)


def refused(pattern: str) -> Scenario:
    """Check that a node ends with 4 if it, or its peer, is not one that the other must admit.

    The first node of a pair, or the service process, is started first; the sender then tries.
    """

    def check(bench: Bench) -> list[Problem]:
        security = _security_of(bench)
        issue = security.issuer()
        own_address = [OTHER_ADDRESS] if security.checks_addresses else []
        on, off = _switch(security, "on"), _switch(security, "off")
        problems: list[Problem] = []
        cases: dict[str, tuple[str, Keys]] = {
            f"a peer whose certificate is {fault}": (fault, {**on, **issue(folder, "")})
            for fault in (EXPIRED, OTHER_AUTHORITY, *own_address)
            for folder in (bench.folder / f"good-{len(fault)}",)
        }
        for fault in (EXPIRED, OTHER_AUTHORITY):
            own = issue(bench.folder / f"bad-{len(fault)}", fault)
            cases[f"its certificate is {fault}"] = ("", {**on, **own})
        cases["it is not secured, and its peer is"] = ("", off)
        for number, (case, (fault, keys)) in enumerate(cases.items()):
            others = issue(bench.folder / f"others-{number}", fault)
            problems += _refusal(bench, security, pattern, {**on, **others}, keys, case)
        return problems

    return Scenario(f"refused[{pattern}]", ("C-43",), check)


def _refusal(
    bench: Bench, security: Security, pattern: str, others: Keys, keys: Keys, case: str
) -> list[Problem]:
    """Return the breaches of a sender with `keys` that must not be admitted by `others`."""
    with security.service(_paths(others)) as endpoints:
        spec = bench.lone_spec(pattern, PATTERNS[pattern].sender, ready_timeout_ms=1_500)
        spec = {**spec, **keys, "peers.endpoints": [*endpoints]}
        receiver = _receiver(bench, pattern, {**others, "run": spec["run"]}, endpoints)
        try:
            if receiver is not None and bench.cell.listening_role(pattern) != "none":
                listening = await_line(receiver, "LISTENING", "C-06")["endpoints"]
                spec["peers.endpoints"] = [*endpoints, *listening]
            timeout_s = READY_TIMEOUT_MS / 1000 + HANG_S
            return refusal(bench.single(spec), 4, "C-43", case, timeout_s)[0]
        finally:
            if receiver is not None:
                receiver.kill()


def _receiver(
    bench: Bench, pattern: str, changes: Keys, endpoints: list[str]
) -> NodeProcess | None:
    """Start the sender's peer; None if all nodes connect only to a service process."""
    if endpoints:
        return None
    spec = bench.lone_spec(pattern, PATTERNS[pattern].receiver)
    return bench.single({**spec, **changes})


def _paths(keys: Mapping[str, Any]) -> dict[str, str]:
    return {key: path for key, path in keys.items() if not key.startswith("settings.")}


def scenarios(patterns: list[str]) -> list[Scenario]:
    """Return the scenarios of the first pattern, because all patterns use the same connections."""
    return [scenario(pattern) for pattern in patterns[:1] for scenario in (admitted, refused)]
