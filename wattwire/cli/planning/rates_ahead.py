"""State the rates that a plan offers, per sender and in total, and those above a link's rate."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from wattwire.model.deployment import PATTERNS, hosts_of_roles, sender_count, sender_rate_hz
from wattwire.model.flows import FlowPart, flow_parts
from wattwire.model.links.profile import DIRECTIONS, Link
from wattwire.model.rig import Rig
from wattwire.model.treatment import Treatment
from wattwire.model.words import count, number

FRAME_BYTES, HEADERS_BYTES = 1460, 54
"""Payload of a full Ethernet frame of TCP, and its headers."""


def rate_lines(treatments: Sequence[Treatment]) -> list[str]:
    """Return a line per sending role with its rate, or none for closed loops and several flows.

    Each flow of a study states its own rate.
    """
    rates: dict[str, set[tuple[float, int]]] = {}
    for treatment in treatments:
        parts = [part.treatment for part in flow_parts(treatment) if not part.name]
        for part in parts:
            rate_hz = sender_rate_hz(part)
            if rate_hz is not None:
                role = PATTERNS[str(part["pattern"])].sender
                rates.setdefault(role, set()).add((rate_hz, sender_count(part)))
    return [
        f"rate: {_range({rate for rate, _ in pairs})} Hz per {role.replace('_', ' ')} × "
        f"{_range({count for _, count in pairs})} = "
        f"{_range({rate * count for rate, count in pairs})} Hz in total"
        for role, pairs in rates.items()
    ]


def link_cautions(
    rig: Rig, links: Mapping[str, Link], treatments: Sequence[Treatment]
) -> list[str]:
    """Return a caution per network whose link cannot carry all that a treatment offers.

    The sum over the flows is a lower bound: it omits replies, acknowledgements, discovery, copies
    for several receivers, and the way to a broker and from it. A trace has no rate to compare.
    """
    most: dict[str, tuple[float, str]] = {}
    for treatment in treatments:
        spec = rig.networks.get(str(treatment.get("network")))
        if spec is None or not spec.is_emulated:
            continue
        link, parts = links[spec.link], flow_parts(treatment)
        shares: dict[str, float] = {}
        payload_bit_s = 0.0
        for part in parts:
            for way in _ways(part, rig, spec.near):
                payload, share = _offered(part.treatment, link, way)
                payload_bit_s += payload
                shares[way] = shares.get(way, 0.0) + share
        load = sum(shares.values()) if link.half_duplex else max(shares.values(), default=0.0)
        if load > max(1.0, most.get(spec.name, (0.0, ""))[0]):
            named = " + ".join(part.name for part in parts if part.name)
            senders = f"the flows {named}" if named else "the senders"
            text = (
                f"network {spec.name}: {senders} offer {number(payload_bit_s / 1e6)} Mbit/s of "
                f"payload, at least {number(load)} times what link {link.name} carries (headers "
                "and overhead included); messages will be lost or wait ever longer. Use a lower "
                "rate or payload, unless this overload is the question"
            )
            most[spec.name] = (load, text)
    return [text for _, text in most.values()]


def _ways(part: FlowPart, rig: Rig, near: Sequence[str]) -> Iterator[str]:
    """Yield the direction of the link on each hop of a part's messages between two hosts."""
    hosts = hosts_of_roles(part, rig)
    path = PATTERNS[str(part.treatment["pattern"])].path
    places = [hosts[role] for role in path if hosts.get(role)]
    for sender, receiver in itertools.pairwise(places):
        if sender != receiver and {sender, receiver} & {*near}:
            yield DIRECTIONS[0 if sender in near else 1]


def _offered(treatment: Treatment, link: Link, way: str) -> tuple[float, float]:
    """Return the payload that a part offers (bit/s), and its share of the link's highest rate."""
    messages_hz = (sender_rate_hz(treatment) or 0.0) * sender_count(treatment)
    payload = int(treatment["payload_bytes"])
    payload_bit_s = 8 * messages_hz * payload
    segments = [segment.direction for segment in link.course(way).segments]
    rates_bit_s = [direction.rate_bit_s or math.inf for direction in segments]
    overhead = min(direction.overhead_bytes for direction in segments)
    frames = math.ceil(payload / FRAME_BYTES)
    on_air = 8 * messages_hz * (payload + frames * (HEADERS_BYTES + overhead))
    return payload_bit_s, on_air / max(rates_bit_s)


def _range(values: set[float] | set[int]) -> str:
    """Return the lowest and the highest value."""
    return " to ".join(dict.fromkeys(map(_number, (min(values), max(values)))))


def _number(value: float) -> str:
    return count(value) if value == round(value) else f"{value:.6g}"
