"""Relate the clocks of hosts, and convert records of nodes to the clock of one host.

Files contain the times of each host's own CLOCK_MONOTONIC. `NodeClocks` alone corrects the times of
nodes: `converted` those of records, and `reference_ns` a single time, by the same lines. Hosts with
the same boot and the same time namespace have one clock, and their times need no correction.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from wattwire.model import LazyModule
from wattwire.model.deployment import Deployment, Flow, deployment_of_run
from wattwire.model.verdict import Reason, Verdict

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LazyModule("polars")

RATE_MAX = 500e-6
"""Largest difference of the rates of two sound clocks, which is the kernel's own limit on the
correction of a rate (adjtimex: 500 ppm).
"""
SECONDS_PER_CHANGE = 10.0
"""Shortest mean time between changes of a clock's rate in a run that wattwire corrects."""
MESSAGE, FEEDBACK = "message", "feedback"
"""Kinds of records at whose receiver `begin_ns` is a time of the sender's clock (C-27)."""
TIMES = ("intended_ns", "begin_ns", "end_ns")


@dataclass(frozen=True)
class Knot:
    """A host's clock minus the controller's at a time of the controller, with its largest error."""

    controller_ns: int
    offset_ns: int
    band_ns: int


@dataclass(frozen=True)
class ClockRelation:
    """The CLOCK_MONOTONIC of a host, in relation to the controller's.

    - `clock` identifies the clock: the boot and the time namespace.
    - `knots` are the ends of the connected lines of the offset (`stats.clock_lines`); there are
      none for a host that has the controller's clock. A single one has no rate.
    - `way` is the path of the exchanges: the agent's pipe, or UDP. `count` is their number, and
      `round_trip_ns` the shortest without the time between receipt and reply at the host.
    - `run_round_trip_ns` is the median of the round trips during the run; None without exchanges.
    - `unseen_ppm` is the largest change of the rate in the middle of the run that the exchanges
      cannot show; None if it is not known.
    - `departure_ns` is the largest change that drift and asymmetric load made to the middle of the
      shortest delays of both directions; None if it is not known.
    - `step_ns` is the first step that no sound clock makes; None without one.
    """

    clock: str
    knots: tuple[Knot, ...] = ()
    way: str = ""
    count: int = 0
    round_trip_ns: int = 0
    unseen_ppm: float | None = None
    departure_ns: int | None = None
    step_ns: int | None = None
    run_round_trip_ns: int | None = None

    @property
    def is_own(self) -> bool:
        """Return whether it is the controller's clock."""
        return not self.knots

    @property
    def band_ns(self) -> int:
        """Return the largest error of the relation during the run (ns); 0 for one clock."""
        return max((knot.band_ns for knot in self.knots), default=0)

    @property
    def changes(self) -> int:
        """Return the number of changes of the clock's rate during the run."""
        return max(0, len(self.knots) - 2)

    @property
    def rates(self) -> list[Fraction]:
        """Return the rate of each line: the change of the offset per time of the controller."""
        return [
            Fraction(end.offset_ns - begin.offset_ns, end.controller_ns - begin.controller_ns)
            for begin, end in itertools.pairwise(self.knots)
        ]

    def line_at(self, controller_ns: int) -> tuple[Knot, Fraction]:
        """Return a knot of the line at a time of the controller, and its rate.

        The first and the last line continue beyond the exchanges.
        """
        rates = self.rates or [Fraction(0)]
        inner_ns = [knot.controller_ns for knot in self.knots[1:-1]]
        index = bisect.bisect_right(inner_ns, controller_ns)
        return self.knots[index], rates[index]

    def offset_ns(self, controller_ns: int) -> int:
        """Return the host's clock minus the controller's (ns) at a time of the controller."""
        if self.is_own:
            return 0
        knot, rate = self.line_at(controller_ns)
        return knot.offset_ns + round((controller_ns - knot.controller_ns) * rate)

    def host_ns(self, controller_ns: int) -> int:
        """Return the host's time (ns) at a time of the controller."""
        return controller_ns + self.offset_ns(controller_ns)

    def to_json(self) -> dict[str, Any]:
        """Return the content of `hosts.HOST.clock` in run.json."""
        return {
            **asdict(self),
            "band_ns": self.band_ns,
            "rates_ppm": [float(rate * 1_000_000) for rate in self.rates],
        }

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> ClockRelation:
        """Return the relation in `hosts.HOST.clock` of a run.json.

        Campaigns from before the exchanges in a run have the shortest exchange before and after it.
        """
        clock = str(document["clock"])
        if "knots" in document:
            names = {item.name for item in fields(ClockRelation)} - {"clock", "knots"}
            values = {name: document[name] for name in names if name in document}
            return ClockRelation(clock, tuple(Knot(**knot) for knot in document["knots"]), **values)
        ends = [end for end in (document.get("before"), document.get("after")) if end]
        if not ends:
            return ClockRelation(clock)
        knots = tuple(
            Knot(end["controller_ns"], end["host_ns"] - end["controller_ns"], document["band_ns"])
            for end in ends
        )
        round_trip_ns = min(end["round_trip_ns"] for end in ends)
        return ClockRelation(
            clock, knots, ends[0]["way"], sum(end["count"] for end in ends), round_trip_ns
        )


def clock_reasons(relations: Mapping[str, ClockRelation]) -> list[Reason]:
    """Return a reason against the run for each host whose clock wattwire cannot correct."""
    reasons = []
    for host, relation in relations.items():
        if relation.step_ns is not None:
            text = (
                f"the clock of host {host} was set, or slewed by more than "
                f"{RATE_MAX * 1e6:.0f} ppm, during the run: found a step of "
                f"{relation.step_ns / 1e6:+.3f} ms relative to the controller's; allowed: a rate "
                f"within ± {RATE_MAX * 1e6:.0f} ppm; remedy: stop what sets it (a time service, a "
                "suspend, or a pause of a virtual machine)"
            )
            reasons.append(Reason(Verdict.INVALID, "clock_changed", text))
            continue
        if not relation.changes:
            continue
        seconds = (relation.knots[-1].controller_ns - relation.knots[0].controller_ns) / 1e9
        allowed = max(1, int(seconds / SECONDS_PER_CHANGE))
        if relation.changes > allowed:
            text = (
                f"the clock of host {host} is not linear: found {relation.changes} changes of its "
                f"rate in {seconds:.0f} s; allowed: {allowed}; remedy: let the time service settle "
                "before the campaign, so that it does not slew the clock"
            )
            reasons.append(Reason(Verdict.INVALID, "clock_not_linear", text))
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
        lines = self._shift_lines(relation)
        index = bisect.bisect_right([line.begin_ns for line in lines[1:]], own_ns)
        return (
            own_ns
            + lines[index].base_ns
            + round((own_ns - lines[index].begin_ns) * lines[index].rate)
        )

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
            first, *others = self._shift_lines(relation)
            own_shift = first.shift_ns(time_ns)
            for line in others:
                is_later = time_ns >= line.begin_ns
                own_shift = pl.when(is_later).then(line.shift_ns(time_ns)).otherwise(own_shift)
            shift_ns = pl.when(number == index).then(own_shift).otherwise(shift_ns)
        return shift_ns

    def _shift_lines(self, relation: ClockRelation) -> list[_ShiftLine]:
        """Return the reference clock minus another clock as lines over the other clock's time.

        Each line begins where the rate of one of both clocks changes; the first one also continues
        to earlier times. One of both clocks is not the controller's, so there is a knot.
        """
        inner_ns = {
            knot.controller_ns for clock in (relation, self.reference) for knot in clock.knots[1:-1]
        }
        first_ns = min(
            clock.knots[0].controller_ns for clock in (relation, self.reference) if clock.knots
        )
        lines = []
        for at_ns in [first_ns, *sorted(inner_ns)]:
            begin_ns = relation.host_ns(at_ns)
            base_ns = self.reference.host_ns(at_ns) - begin_ns
            rate, reference_rate = (
                Fraction(0) if clock.is_own else clock.line_at(at_ns)[1]
                for clock in (relation, self.reference)
            )
            lines.append(
                _ShiftLine(begin_ns, base_ns, float((1 + reference_rate) / (1 + rate) - 1))
            )
        return lines


@dataclass(frozen=True)
class _ShiftLine:
    """A shift of times: `base_ns` at `begin_ns` of a clock, with a change per time of this clock.

    A 64-bit float is exact to 1 ns for the time since the exchange.
    """

    begin_ns: int
    base_ns: int
    rate: float

    def shift_ns(self, time_ns: pl.Expr) -> pl.Expr:
        since_ns = (time_ns - self.begin_ns).cast(pl.Float64)
        return self.base_ns + (since_ns * self.rate).round().cast(pl.Int64)


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
