"""Scenarios for the address of the host: bad addresses, and the sockets of nodes (C-38)."""

from __future__ import annotations

from typing import Any

from ..audit_peers import audit, closing_problems
from ..cell import Broken, Problem
from ..group import Group, pair
from ..host import HERE
from ..process import NodeProcess
from ..roles import PATTERNS
from ..scenario import ALWAYS, Bench, Scenario
from ..spec import HOST_ADDRESS
from ..usage import refusal
from .sockets import OpenSocket, open_sockets

OTHER_ADDRESS = "127.0.0.2"
"""An address of every Linux host, because all of 127.0.0.0/8 is on the interface lo."""
BAD_ADDRESSES: tuple[tuple[str, Any], ...] = (
    ("host.address", "localhost"),
    ("host.address", "127.0.0.256"),
    ("peers.addresses", [HOST_ADDRESS, "::1"]),
)


def bad_address(bench: Bench) -> list[Problem]:
    """Check that a node ends with 2 and names the key of an address that is not IPv4."""
    problems: list[Problem] = []
    pattern = bench.cell.patterns[0]
    for role in PATTERNS[pattern].roles:
        for key, value in BAD_ADDRESSES:
            node = bench.single({**bench.lone_spec(pattern, role), key: value})
            refusal_problems, error = refusal(node, 2, "C-38", f"{key}: {value!r}")
            problems += refusal_problems
            if not refusal_problems and error.get("key") != key:
                text = f"{role}: {key}: {value!r}: the ERROR line names {error.get('key')!r}"
                problems.append(Problem("C-38", text))
    return problems


def own_address(pattern: str) -> Scenario:
    """Check a run on another address of this host: its endpoints, its sockets, its messages."""

    def check(bench: Bench) -> list[Problem]:
        bench.need("network")
        changes: dict[str, Any] = {}
        if bench.cell.places == (HERE,):  # other hosts have an address of their own
            changes = {"host.address": OTHER_ADDRESS, "peers.addresses": [OTHER_ADDRESS]}
        with bench.group(pattern, pair(bench.cell, bench.cell, pattern, changes)) as group:
            try:
                group.start()
            except Broken as error:  # a peer may be unable to reach a node on another address
                return [*_network_problems(group), error.problem]
            problems = _network_problems(group)
            group.go()
            group.wait_sent()  # a sender may open a socket for its first message
            problems += _network_problems(group)
            group.finish()
            return [*dict.fromkeys(problems), *audit(group), *closing_problems(group)]

    return Scenario(f"own-address[{pattern}]", ("C-38", *ALWAYS), check)


def _network_problems(group: Group) -> list[Problem]:
    return [
        Problem("C-38", f"{node.label}: {text}") for node in group.nodes for text in _breaches(node)
    ]


def _breaches(node: NodeProcess) -> list[str]:
    """Return the endpoints and open sockets of a node that are not on its host's address."""
    address, interface = node.spec["host.address"], node.spec["host.interface"]
    endpoints = node.fields("LISTENING").get("endpoints", [])
    texts = [
        f"LISTENING reports {endpoint!r}, expected an endpoint on host.address {address}"
        for endpoint in endpoints
        if f"{address}:" not in endpoint
    ]
    return texts + [
        f"the socket {opened} is not on host.address {address}"
        for opened in open_sockets(node.pid)
        if not is_on_host(opened, address, interface)
    ]


def is_on_host(opened: OpenSocket, address: str, interface: str) -> bool:
    """Return whether a socket is reachable only over the host's address and interface."""
    if opened.device == interface or opened.address == address:
        return True
    # No other host reaches this socket. On one host, the address must be that of the spec.
    return opened.address == HOST_ADDRESS and not address.startswith("127.")


def scenarios(patterns: list[str]) -> list[Scenario]:
    return [
        Scenario("bad-address", ("C-38",), bad_address),
        *(own_address(pattern) for pattern in patterns),
    ]
