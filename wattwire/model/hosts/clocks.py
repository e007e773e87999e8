"""Relate the clocks of hosts, and convert records of nodes to the clock of one host.

Files contain the times of each host's own CLOCK_MONOTONIC. `NodeClocks` alone corrects the times of
nodes: `converted` those of records, and `reference_ns` a single time, by the same line. Hosts with
the same boot and the same time namespace have one clock, and their times need no correction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from wattwire.model import LazyModule
from wattwire.model.deployment import Deployment, Flow, deployment_of_run
from wattwire.model.verdict import Reason, Verdict

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LazyModule("polars")

BAND_ALLOWANCE_NS = 50_000
"""Part of a band for what the round trip does not show: the change of the clocks' rate in a run."""
RATE_MAX = 500e-6
"""Largest difference of the rates of two sound clocks, which is the kernel's own limit on the
correction of a rate (adjtimex: 500 ppm).
"""
MESSAGE, FEEDBACK = "message", "feedback"
"""Kinds of records at whose receiver `begin_ns` is a time of the sender's clock (C-27)."""
TIMES = ("intended_ns", "begin_ns", "end_ns")


@dataclass(frozen=True)
class Exchange:
    """The best of `count` exchanges of four timestamps with a host.

    - `controller_ns` and `host_ns` are times of both clocks at one instant, with an error of at
      most half of `round_trip_ns`.
    - `round_trip_ns` excludes the time between receipt and reply at the host.
    - `way` is the path of the exchange: the agent's pipe, or UDP.
    """

    controller_ns: int
    host_ns: int
    round_trip_ns: int
    count: int
    way: str

    @property
    def offset_ns(self) -> int:
        """Return the host's clock minus the controller's clock (ns)."""
        return self.host_ns - self.controller_ns

    @property
    def band_ns(self) -> int:
        """Return the largest error of the offset (ns)."""
        return (self.round_trip_ns + 1) // 2 + BAND_ALLOWANCE_NS


@dataclass(frozen=True)
class ClockRelation:
    """The CLOCK_MONOTONIC of a host, in relation to the controller's.

    - `clock` identifies the clock: the boot and the time namespace.
    - `before` is the exchange before the run; None for a host that has the controller's clock.
    - `after` is the exchange after the run; None if there was none.
    """

    clock: str
    before: Exchange | None = None
    after: Exchange | None = None

    @property
    def band_ns(self) -> int:
        """Return the largest error of the relation during the run (ns); 0 for one clock."""
        exchanges = (self.before, self.after)
        return max((exchange.band_ns for exchange in exchanges if exchange), default=0)

    @property
    def drift(self) -> Fraction:
        """Return the change of the offset per time of the controller (dimensionless)."""
        if self.before is None or self.after is None:
            return Fraction(0)
        elapsed_ns = self.after.controller_ns - self.before.controller_ns
        change_ns = self.after.offset_ns - self.before.offset_ns
        return Fraction(change_ns, elapsed_ns) if elapsed_ns > 0 else Fraction(0)

    def offset_ns(self, controller_ns: int) -> int:
        """Return the host's clock minus the controller's (ns) at a time of the controller."""
        if self.before is None:
            return 0
        since_ns = controller_ns - self.before.controller_ns
        return self.before.offset_ns + round(since_ns * self.drift)

    def host_ns(self, controller_ns: int) -> int:
        """Return the host's time (ns) at a time of the controller."""
        return controller_ns + self.offset_ns(controller_ns)

    def controller_ns(self, host_ns: int) -> int:
        """Return the controller's time (ns) at a time of the host."""
        if self.before is None:
            return host_ns
        since_ns = host_ns - self.before.host_ns
        return host_ns - self.before.offset_ns - round(since_ns * self._drift_by_host)

    @property
    def _drift_by_host(self) -> Fraction:
        """Return the change of the offset per time of the host (dimensionless)."""
        return self.drift / (1 + self.drift)

    def change_ns(self) -> int | None:
        """Return the step (ns) by which a clock was set during the run, or None.

        Both offsets of a sound clock agree within their bands and RATE_MAX. A difference beyond
        these is a clock that was set, a host that was suspended, or a rate that cannot be corrected
        by a line.
        """
        if self.before is None or self.after is None:
            return None
        elapsed_ns = max(0, self.after.controller_ns - self.before.controller_ns)
        step_ns = self.after.offset_ns - self.before.offset_ns
        allowed_ns = self.before.band_ns + self.after.band_ns + RATE_MAX * elapsed_ns
        return step_ns if abs(step_ns) > allowed_ns else None

    def to_json(self) -> dict[str, Any]:
        """Return the content of `hosts.HOST.clock` in run.json."""
        return {**asdict(self), "band_ns": self.band_ns, "drift_ppm": float(self.drift * 1_000_000)}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> ClockRelation:
        """Return the relation in `hosts.HOST.clock` of a run.json."""
        before, after = (
            Exchange(**document[name]) if document.get(name) else None
            for name in ("before", "after")
        )
        return ClockRelation(str(document["clock"]), before, after)


def clock_reasons(relations: Mapping[str, ClockRelation]) -> list[Reason]:
    """Return a reason against the run for each host whose clock was set during the run."""
    reasons = []
    for host, relation in relations.items():
        step_ns = relation.change_ns()
        if step_ns is not None:
            text = (
                f"the clock of host {host} changed by {step_ns / 1e6:+.3f} ms relative to the "
                f"controller's during the run; allowed: ± {relation.band_ns / 1e6:.3f} ms at both "
                f"ends and {RATE_MAX * 1e6:.0f} ppm"
            )
            reasons.append(Reason(Verdict.INVALID, "clock_changed", text))
    return reasons


@dataclass(frozen=True)
class NodeClocks:
    """The clocks of a run's nodes, and the clock to which times are converted.

    - `relations` is node number → relation. It is empty for a run on one host without a rig.
    - `reference` is the clock of the converted times.
    - `repliers` is caller → the node that replies to its calls.
    """

    relations: Mapping[int, ClockRelation] = field(default_factory=dict)
    reference: ClockRelation = ClockRelation("")
    repliers: Mapping[int, int] = field(default_factory=dict)

    @staticmethod
    def of(relations: Mapping[str, ClockRelation], deployment: Deployment) -> NodeClocks:
        """Return the clocks of a deployment's nodes. The reference is the first sender's clock.

        `relations` is host → relation. Hosts with the same clock share the relation with the
        smallest band.
        """
        if not relations:
            return ONE_CLOCK
        best: dict[str, ClockRelation] = {}
        for relation in sorted(relations.values(), key=lambda item: item.band_ns):
            best.setdefault(relation.clock, relation)
        by_node = {
            node.node: best[relations[deployment.host_of(node)].clock] for node in deployment.nodes
        }
        flows = deployment.flows
        senders = [by_node[flow.sender] for flow in flows]
        return NodeClocks(
            by_node,
            senders[0] if senders else ClockRelation(""),
            {flow.sender: flow.receivers[0] for flow in flows if flow.result},
        )

    @property
    def are_one(self) -> bool:
        """Return whether all nodes have the reference clock, so that no time is corrected."""
        return all(relation.clock == self.reference.clock for relation in self.relations.values())

    def band_ns(self, node: int, other: int) -> int:
        """Return the largest error (ns) of a difference of times of two nodes.

        It is the sum of the bands of both clocks, because a bound adds linearly; 0 on one clock.
        """
        clocks = [self.relations[number] for number in (node, other) if number in self.relations]
        if len({relation.clock for relation in clocks}) < 2:
            return 0
        return sum(relation.band_ns for relation in clocks)

    def flow_band_ns(self, flow: Flow) -> int:
        """Return the largest error (ns) of the latencies of a flow; 0 for round trips."""
        if flow.result:
            return 0
        return max(self.band_ns(flow.sender, receiver) for receiver in flow.receivers)

    def hop_bands_ns(self, flow: Flow) -> list[int]:
        """Return the largest error (ns) of the latency of each hop of a flow with relays."""
        through = (flow.sender, *flow.relays)
        hops = [
            self.band_ns(node, following)
            for node, following in zip(through, through[1:], strict=False)
        ]
        return [*hops, max(self.band_ns(through[-1], receiver) for receiver in flow.receivers)]

    def reference_ns(self, node: int, own_ns: int) -> int:
        """Return the time (ns) of the reference clock at a time of a node's own clock."""
        relation = self.relations.get(node, self.reference)
        if relation.clock == self.reference.clock:
            return own_ns
        origin_ns, base_ns, rate = self._shift_line(relation)
        return own_ns + base_ns + round((own_ns - origin_ns) * rate)

    def converted(self, records: pl.DataFrame) -> pl.DataFrame:
        """Return records with all times on the reference clock.

        All times of one record that are of one clock move by the same amount, so the durations
        that one clock measured do not change. The time `begin_ns` of a received message is of the
        sender's clock. Latencies can become negative by at most their band.
        """
        if self.are_one:
            return records
        clocks = list(dict.fromkeys(self.relations.values()))
        number_of = {node: clocks.index(relation) for node, relation in self.relations.items()}
        own = _clock_number(pl.col("node"), number_of)
        of_replier = {caller: number_of[node] for caller, node in self.repliers.items()}
        origin = (
            pl.when(pl.col("kind") == MESSAGE)
            .then(_clock_number(pl.col("sender"), number_of))
            .when((pl.col("kind") == FEEDBACK) & (pl.col("node") == pl.col("sender")))
            .then(_clock_number(pl.col("sender"), of_replier))
            .otherwise(own)
        )
        names = [name for name in TIMES if name in records.columns]
        at = pl.coalesce([name for name in ("end_ns", "begin_ns", "intended_ns") if name in names])
        own_shift = self._shift_ns(clocks, own, at)
        shifts = dict.fromkeys(names, own_shift)
        shifts["begin_ns"] = (
            pl.when(origin == own)
            .then(own_shift)
            .otherwise(self._shift_ns(clocks, origin, pl.col("begin_ns")))
        )
        return records.with_columns(
            (pl.col(name) + shift).alias(name) for name, shift in shifts.items()
        )

    def _shift_ns(self, clocks: list[ClockRelation], number: pl.Expr, time_ns: pl.Expr) -> pl.Expr:
        """Return the reference clock minus the clock with this number, at its own times (ns)."""
        shift_ns = pl.lit(0, pl.Int64)
        for index, relation in enumerate(clocks):
            if relation.clock == self.reference.clock:
                continue
            origin_ns, base_ns, rate = self._shift_line(relation)
            since_ns = ((time_ns - origin_ns).cast(pl.Float64) * rate).round().cast(pl.Int64)
            shift_ns = pl.when(number == index).then(base_ns + since_ns).otherwise(shift_ns)
        return shift_ns

    def _shift_line(self, relation: ClockRelation) -> tuple[int, int, float]:
        """Return the reference clock minus another clock as a line over the other clock's time.

        The line has a time of the other clock (ns), the shift at this time (ns), and the change of
        the shift per time (dimensionless). A 64-bit float is exact to 1 ns for the time since the
        exchange. One of both clocks is not the controller's, so there is an exchange.
        """
        known = relation.before or self.reference.before
        origin_ns = relation.host_ns(known.controller_ns if known else 0)
        base_ns = self.reference.host_ns(relation.controller_ns(origin_ns)) - origin_ns
        return origin_ns, base_ns, float((1 + self.reference.drift) / (1 + relation.drift) - 1)


ONE_CLOCK = NodeClocks()
"""The clocks of a run whose nodes are all on one host: no time is corrected."""


def clocks_of_run(run: Mapping[str, Any]) -> NodeClocks:
    """Return the clocks of the nodes in the document of a run (run.json with its deployment)."""
    relations = relations_of_run(run)
    return NodeClocks.of(relations, deployment_of_run(run)) if relations else ONE_CLOCK


def relations_of_run(run: Mapping[str, Any]) -> dict[str, ClockRelation]:
    """Return host → relation of its clock in the document of a run; empty without a rig."""
    return {
        host: ClockRelation.from_json(entry["clock"])
        for host, entry in (run.get("hosts") or {}).items()
        if entry.get("clock")
    }


def _clock_number(node: pl.Expr, number_of: Mapping[int, int]) -> pl.Expr:
    """Return the number of each node's clock; null for an unknown node."""
    return node.cast(pl.Int64).replace_strict(number_of, default=None, return_dtype=pl.Int64)
