"""Derive the services, the deployment and the nodes' specs of a treatment (end of the contract)."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wattwire.catalog import Bridge, Cell, Middleware, home
from wattwire.model import LazyModule
from wattwire.model.deployment import MEMBER, PATTERNS, Deployment, Node, Pattern, deployment_of
from wattwire.model.errors import UsageError
from wattwire.model.flows import FlowPart, flow_parts
from wattwire.model.hosts.bridging import (
    END_SETTING,
    EXIT,
    FACTOR,
    OUTER_SETTING,
    BridgeEnd,
    bridge_ends,
    bridged,
)
from wattwire.model.rig import ONE_HOST, Rig
from wattwire.model.study import Plan
from wattwire.model.treatment import Level, Treatment
from wattwire.model.warm_up import SETTLING, SETTLING_CALLS
from wattwire.run.network import HOST_ADDRESS, HOST_INTERFACE

if TYPE_CHECKING:
    import jsonschema
else:
    jsonschema = LazyModule("jsonschema")

SECOND_NS = 1_000_000_000
MILLISECOND_NS = 1_000_000
CALL, RESULT = "call", "result"
"""Kinds of the records with the result of a call and of an action's goal (C-25)."""
MESSAGE_RECORD_BYTES = 40
"""Size of a record of `model/records.py`, which needs numpy."""
CAPACITY_MARGIN = 1.5
"""Factor by which room for records exceeds the scheduled messages: duplicates and feedback."""
BEYOND_FACTOR = 4
BEYOND_CALLS = 100_000
"""Limits of the calls that may follow a client's count: BEYOND_FACTOR times the count, but at most
BEYOND_CALLS or the count, whichever is larger. Clients that exceed this end before the slowest.
"""


PARTS, PART = "parts", "part."
"""Key of a member's spec with the number of its parts, and prefix of the keys of a part."""
PART_KEYS = (
    "run", "role", "node", "index", "peers.nodes", "peers.count", "period_ns", "phase_ns",
    "payload.bytes", "payload.seed", "record.capacity",
)  # fmt: skip
"""Keys that each part of a member has for itself, besides its settings (C-41)."""


@dataclass(frozen=True)
class PlacedTreatment:
    """A treatment with the cells of its nodes and the rig of its hosts.

    Its services and its deployment are computed once, for all runs of the treatment.
    """

    treatment: Treatment
    cells: Mapping[str, Cell]
    """Role → cell, and FACTOR → the bridge, if there is one. All roles have one middleware."""
    rig: Rig = ONE_HOST

    @property
    def middleware(self) -> Middleware:
        """Return the middleware of the nodes."""
        return next(iter(self.cells.values())).middleware

    @property
    def bridge(self) -> Bridge | None:
        """Return the bridge that joins the hosts; None without a bridge."""
        bridge = self.cells.get(FACTOR)
        return bridge if isinstance(bridge, Bridge) else None

    @functools.cached_property
    def services(self) -> dict[str, dict[str, Any]]:
        """Return service → its table: those of the middleware, and of a bridge's outer one."""
        services = self.middleware.services_for(self.given_settings(self.treatment))
        return services if self.bridge is None else {**services, **outer_services(self.bridge)}

    @functools.cached_property
    def deployment(self) -> Deployment:
        """Return the processes of a run and their hosts; no host has to be connected."""
        names = {role: cell.name for role, cell in self.cells.items()}
        deployment = deployment_of(self.treatment, names, list(self.services), self.rig)
        return deployment if self.bridge is None else bridged(deployment, self.bridge.name)

    def given_settings(self, part: Treatment) -> dict[str, Level]:
        """Return the given settings of a part's nodes; a bridge adds its own defaults."""
        return part.settings if self.bridge is None else self.bridge.inner_settings(part.settings)

    def settings(self, part: Treatment) -> dict[str, Level]:
        """Return all settings of the nodes of a part of the treatment."""
        return self.middleware.effective_settings(self.given_settings(part))


@dataclass(frozen=True)
class RunNode(Node):
    """A node with its program and its spec. It connects to the listening nodes `connects_to`.

    The spec of a node of a topology describes it as if it were alone; `process_spec` joins the
    specs of a member's nodes.
    """

    program: Cell
    spec: dict[str, Any]
    listens: bool = False
    connects_to: frozenset[int] = frozenset()


def needs(treatment: Treatment) -> list[str]:
    """Return the capabilities that a treatment, or a part of it, requires of its cells."""
    capabilities = [
        f"encoding.{treatment['payload_encoding']}",
        f"pacing.{treatment['pacing']}",
        f"loop.{treatment['loop']}",
    ]
    pattern = PATTERNS[str(treatment["pattern"])]
    if pattern.result:
        capabilities.append(f"reply.{treatment['reply']}")
    if treatment["literal"]:
        capabilities.append("literal")
    overlapping = int(treatment["outstanding_max"]) > 1 and treatment["loop"] == "open"
    if overlapping and pattern.result == CALL:
        capabilities.append("async_client")
    return capabilities


def period_ns(treatment: Treatment) -> int:
    """Return the period (ns) of an open loop; 0 for a closed loop.

    The period of a rate is rounded up: a shorter one, such as 333,333,333 ns for 3 Hz, would
    make one more message due at the end of a window of whole seconds.
    """
    if treatment["loop"] == "closed":
        return 0
    if interval_s := treatment.get("interval_s"):
        return round(float(interval_s) * SECOND_NS)
    return math.ceil(SECOND_NS / float(treatment["rate_hz"]))


def warm_up_calls(treatment: Treatment, plan: Plan) -> int:
    """Return each client's warm-up calls; 0 unless the warm-up is counted in calls."""
    return max(0, plan.warmup_calls) if treatment["loop"] == "closed" else 0


def scheduled_per_sender(treatment: Treatment, plan: Plan, control: str = "") -> int:
    """Return the messages that a sender schedules at phase 0, warm-up included (C-10, C-11).

    This function and the next ones apply to a treatment with one pattern, or to a part of one.
    """
    if control == SETTLING:
        return SETTLING_CALLS
    if treatment["loop"] == "closed":
        return warm_up_calls(treatment, plan) + int(treatment["count"])
    duration_ns = round(plan.duration_s * SECOND_NS)
    return -(-duration_ns // period_ns(treatment))


def calls_beyond(treatment: Treatment, scheduled: int) -> int:
    """Return the calls that a client may make after its scheduled calls (C-11).

    Fast clients continue to call until the slowest client has made all its calls.
    """
    if treatment["loop"] == "open" or int(treatment["clients"]) == 1:
        return 0
    return max(scheduled, min(BEYOND_FACTOR * scheduled, BEYOND_CALLS))


def run_nodes(
    placed: PlacedTreatment,
    plan: Plan,
    token: str,
    control: str = "",
    addresses: Mapping[str, str] | None = None,
    interfaces: Mapping[str, str] | None = None,
) -> list[RunNode]:
    """Return the nodes of a run in the order of their numbers.

    `addresses` and `interfaces` map each host to its address and its device in the network of the
    run. A deployment on one host does not use them.
    """
    deployment = placed.deployment
    ends = bridge_ends(deployment)
    parts = _parts_with_settings(placed)
    # The nodes of a topology discover each other, because each of them may need all others.
    listening = deployment.listening(
        *(placed.middleware.listens(p.contract, s) for part, p, s in parts if not part.members)
    )
    numbers = iter(deployment.nodes)
    nodes = []
    for part, pattern, settings in parts:
        counts = pattern.counts(part.treatment)
        messages = scheduled_per_sender(part.treatment, plan, control)
        common = _common(part.treatment, plan, part.token(token), settings, messages)
        messages_max = messages + calls_beyond(part.treatment, messages)
        for node in itertools.islice(numbers, sum(counts.values()) + len(ends)):
            # Phases are spread evenly over a period because real senders are not synchronised.
            place = node.index if not part.name else part.position
            senders = part.of if part.name else counts[node.role]
            period = period_ns(part.treatment)
            end = ends.get(node.node)
            program = placed.cells[FACTOR if end else node.role]
            spec = {
                **common,
                **program.declared,
                "cell": node.cell,
                "quiet_ms": plan.drain_ms(len({p.host for p in deployment.processes})),
                "role": node.role,
                "node": node.node,
                "index": node.index,
                **({"hop": node.hop} if pattern.has_positions else {}),
                "peers.nodes": deployment.other_side(node.node),
                "peers.count": len(deployment.neighbours(node.node)),
                **_network_keys(deployment, node, addresses or {}, interfaces or {}),
                "phase_ns": period * place // senders if node.sends else 0,
                **_bridge_keys(end, placed.bridge),
                "record.capacity": _capacity(
                    part.treatment, messages_max, len(deployment.senders(node.node))
                ),
            }
            nodes.append(
                RunNode(
                    **vars(node),
                    program=program,
                    spec=spec,
                    listens=node.node in listening or _listens(end, placed.bridge),
                    connects_to=deployment.connects_to(node.node, listening)
                    | _other_end(end, placed.bridge),
                )
            )
    return nodes


def process_spec(
    nodes: Sequence[RunNode], token: str, settings: Mapping[str, Level]
) -> dict[str, Any]:
    """Return the spec of the process of these nodes: of its only node, or of a member (C-41).

    `token` is that of the run, and `settings` are those of the study, which apply to the whole
    process of a member.
    """
    first = nodes[0].spec
    role, _, index = nodes[0].process.rpartition("-")
    if role != MEMBER:
        return first
    addresses = (address for node in nodes for address in node.spec["peers.addresses"])
    return {
        **first,
        **{f"settings.{name}": level for name, level in settings.items()},
        "run": token,
        "role": MEMBER,
        "index": int(index),
        "phase_ns": 0,
        "peers.nodes": sorted({peer for node in nodes for peer in node.spec["peers.nodes"]}),
        "peers.count": sum(node.spec["peers.count"] for node in nodes),
        "peers.addresses": list(dict.fromkeys(addresses)),
        "record.capacity": 0,
        PARTS: len(nodes),
        **{
            f"{PART}{number}.{key}": value
            for number, node in enumerate(nodes)
            for key, value in node.spec.items()
            if key in PART_KEYS or key.startswith("settings.")
        },
    }


def part_specs(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the specs of a member's parts, as if each of them were a node of its own."""
    common = {k: v for k, v in spec.items() if k != PARTS and not k.startswith(PART)}
    specs = []
    for number in range(int(spec.get(PARTS, 0))):
        prefix = f"{PART}{number}."
        own = {k.removeprefix(prefix): v for k, v in spec.items() if k.startswith(prefix)}
        specs.append({**common, **own})
    return specs


def _parts_with_settings(
    placed: PlacedTreatment,
) -> list[tuple[FlowPart, Pattern, dict[str, Level]]]:
    """Return each part of a treatment with its pattern and all settings of its nodes."""
    return [
        (part, PATTERNS[str(part.treatment["pattern"])], placed.settings(part.treatment))
        for part in flow_parts(placed.treatment)
    ]


def outer_services(bridge: Bridge) -> dict[str, dict[str, Any]]:
    """Return the services that the bridge processes connect to."""
    return bridge.outer.services_for(bridge.outer_settings)


def _bridge_keys(end: BridgeEnd | None, bridge: Bridge | None) -> dict[str, Level]:
    """Return the keys of a bridge process's spec that other nodes do not have."""
    if end is None or bridge is None:
        return {}
    outer = {f"{OUTER_SETTING}{name}": level for name, level in bridge.end_settings.items()}
    return {END_SETTING: end.kind, **outer}


def _listens(end: BridgeEnd | None, bridge: Bridge | None) -> bool:
    return end is not None and end.kind == EXIT and bridge is not None and bridge.exit_listens


def _other_end(end: BridgeEnd | None, bridge: Bridge | None) -> frozenset[int]:
    """Return the exit to which an entry connects."""
    if end is None or end.kind == EXIT or bridge is None or not bridge.exit_listens:
        return frozenset()
    return frozenset((end.other,))


def _network_keys(
    deployment: Deployment, node: Node, addresses: Mapping[str, str], interfaces: Mapping[str, str]
) -> dict[str, Any]:
    """Return the keys of clause C-38. On one host, they are those of the loopback device."""
    if len(deployment.hosts) == 1:
        return {
            "host.address": HOST_ADDRESS,
            "host.interface": HOST_INTERFACE,
            "peers.addresses": [HOST_ADDRESS],
        }
    by_number = {other.node: other for other in deployment.nodes}
    peers = (by_number[number] for number in deployment.neighbours(node.node))
    host = deployment.host_of(node)
    return {
        "host.address": addresses[host],
        "host.interface": interfaces[host],
        "peers.addresses": list(dict.fromkeys(addresses[deployment.host_of(p)] for p in peers)),
    }


@functools.cache
def _validator() -> jsonschema.Draft202012Validator:
    path = home() / "contract" / "schemas" / "spec.schema.json"
    return jsonschema.Draft202012Validator(json.loads(path.read_text(encoding="utf-8")))


def check_spec(spec: dict[str, Any]) -> None:
    """Check a spec against the contract (C-02), because nodes do not check values.

    Raise UsageError with each wrong key, its value and the allowed values.
    """
    faults = [
        f"{e.json_path}: {e.message}"
        for each in (spec, *part_specs(spec))
        for e in _validator().iter_errors(each)
    ]
    if faults:
        raise UsageError(f"spec of {spec.get('role')} {spec.get('node')}: {'; '.join(faults)}")


def payload_seed(token: str) -> int:
    """Return the seed of the payload's content, derived from the run's token.

    Different seeds make messages of another run detectable.
    """
    return int.from_bytes(hashlib.sha256(token.encode()).digest()[:8], "little") >> 11


def _common(
    treatment: Treatment, plan: Plan, token: str, settings: dict[str, Any], messages: int
) -> dict[str, Any]:
    closed = treatment["loop"] == "closed"
    timeout_ns = int(treatment["timeout_ms"]) * MILLISECOND_NS
    return {
        "contract": 3,
        "run": token,
        "pattern": PATTERNS[str(treatment["pattern"])].contract,
        "loop": treatment["loop"],
        "peers.endpoints": [],
        "period_ns": period_ns(treatment),
        "duration_ns": 0 if closed else round(plan.duration_s * SECOND_NS),
        "count": messages if closed else 0,
        "count_beyond": calls_beyond(treatment, messages),
        # The controller marks a warm-up that is counted in calls, because C-13 defines only times.
        "warmup_ns": 0 if closed and plan.warmup_calls else round(plan.warmup_s * SECOND_NS),
        "overrun_ns": timeout_ns,
        "timeout_ns": timeout_ns,
        "outstanding_max": treatment["outstanding_max"],
        "linger_ms": plan.linger_ms,
        "ready_timeout_ms": round(plan.ready_timeout_s * 1000),
        "pacing": treatment["pacing"],
        "spin_ns": 0,
        "payload.bytes": treatment["payload_bytes"],
        "payload.encoding": treatment["payload_encoding"],
        "payload.seed": payload_seed(token),
        "payload.literal": treatment["literal"],
        "reply": treatment["reply"],
        "reply.literal": "",
        "verify": treatment["verify"],
        "action.feedback": treatment["action_feedback"],
        "tls.authority": "",
        "tls.certificate": "",
        "tls.key": "",
        "security.governance": "",
        "security.permissions": "",
        **{f"settings.{name}": value for name, value in settings.items()},
    }


def nodes_record_bytes(treatment: Treatment, plan: Plan, control: str = "") -> int:
    """Return the memory (bytes) that the nodes of a run allocate for records (C-26)."""
    records = 0
    for part in (flow.treatment for flow in flow_parts(treatment)):
        senders, others = _senders_and_others(part)
        scheduled = scheduled_per_sender(part, plan, control)
        messages_max = scheduled + calls_beyond(part, scheduled)
        records += senders * _capacity(part, messages_max, 1)
        records += others * _capacity(part, messages_max, senders)
    return records * MESSAGE_RECORD_BYTES


def records_of_run(treatment: Treatment, plan: Plan, control: str = "") -> int:
    """Return the number of records that all nodes of a run write."""
    records = 0
    for part in (flow.treatment for flow in flow_parts(treatment)):
        senders, others = _senders_and_others(part)
        per_message = _records_per_node(part) * senders * (1 + others)
        records += scheduled_per_sender(part, plan, control) * per_message
    return records


def _senders_and_others(treatment: Treatment) -> tuple[int, int]:
    """Return the number of senders and of the other nodes, which each message passes or reaches."""
    pattern = PATTERNS[str(treatment["pattern"])]
    counts = pattern.counts(treatment)
    return counts[pattern.sender], sum(counts.values()) - counts[pattern.sender]


def _records_per_node(treatment: Treatment) -> int:
    """Return the number of records that each node of a flow writes of one message or call."""
    if PATTERNS[str(treatment["pattern"])].result == RESULT:
        return 2 + int(treatment["action_feedback"])
    return 1


def _capacity(treatment: Treatment, messages: int, senders: int) -> int:
    """Return the number of records that one node needs memory for.

    `messages` is the number of messages of each of the `senders` whose messages it records.
    """
    records = messages * _records_per_node(treatment) * senders
    return int(records * CAPACITY_MARGIN) + 1000
