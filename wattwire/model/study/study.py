"""Define the value types of a study."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wattwire.model.deployment import MEMBER, PATTERNS, PROCESSES, Pattern, Request
from wattwire.model.fields import given, number
from wattwire.model.flows import FlowSpec, TopologyFlow, flow_levels
from wattwire.model.limits import Limit
from wattwire.model.output_requests import Shown
from wattwire.model.paper_path import Walk
from wattwire.model.publication.claims import Claim
from wattwire.model.questions import Question
from wattwire.model.rig import ONE_HOST, Rig
from wattwire.model.study.drive import Drive
from wattwire.model.study.levels import DEFAULT_COUNTS, DEFAULT_LEVELS, DEFAULT_RATE_HZ
from wattwire.model.treatment import Level, Treatment
from wattwire.model.validity import ValidityLimits
from wattwire.model.variants import FACTOR as VARIANT
from wattwire.model.variants import Variant
from wattwire.model.warm_up import AUTO

TRACED, PROFILED, PROOF = "syscalls", "layers", "proof"
"""Values of `control` for runs that count system calls, record layers, or prove security."""
ANSWER_SCALES = ("log", "plain")
BEST_OF = 'a list of factors, e.g. ["middleware", "language"]'
STOP_BLOCKS_MIN = 10
"""Minimum number of blocks before a stop by width. With fewer blocks, stopping early would reduce
the coverage of the confidence intervals.
"""


@dataclass(frozen=True)
class Plan:
    """Number, duration and order of the runs. The suffix of a name is its unit."""

    blocks: int = 5
    seed: int = 1
    primary: str = ""
    duration_s: float = 10.0
    warmup_s: float = 0.0
    warmup_calls: int = AUTO
    """Number of warm-up calls of each client in closed loop. With AUTO, settling runs before the
    first block determine the number.
    """
    warmup_max_s: float = 120.0
    """Longest warm-up per run that AUTO may choose for the slowest cell, in seconds."""
    baseline_s: float = 1.0
    quiet_ms: int = 100
    linger_ms: int = 1000
    cooldown_s: float = 0.0
    retries: int = 1
    ready_timeout_s: float = 20.0
    quiet_wait_s: float = 10.0
    """Longest wait before a run for other load and steal to fall below their limits, in seconds."""
    controls: bool = True
    """Whether every block has control runs. They are two identical runs of the first treatment, and
    a run of it without sampling in the window.
    """
    syscall_runs: int = 0
    """Number of runs of each treatment that count system calls. They follow all blocks as control
    runs of the kind TRACED. No answer and no measured time uses them.
    """
    layer_runs: int = 0
    """Number of first blocks in which each treatment also has a run of the kind PROFILED, which
    records the layers of its messages. It is next to the timed run. No answer uses it.
    """
    proof_runs: int = 1
    """Number of runs of the kind PROOF of each treatment that names a setting of security. They
    follow all blocks. No answer and no measured time uses them.
    """
    stop_width: float = 0.0
    """Half-width of the primary ratio's confidence interval at which the campaign stops, as a share
    of the ratio. With 0, all `blocks` are run.
    """
    blocks_min: int = STOP_BLOCKS_MIN
    """Minimum number of blocks before a stop by width. `blocks` is the maximum."""

    def drain_ms(self, hosts: int) -> int:
        """Return the silence (ms) after which a receiver ends, in a run on `hosts` hosts.

        Between hosts it is the whole `linger_ms`: on a slow link, a message alone can need longer
        than `quiet_ms`, and its receiver would end while the message arrives.
        """
        return self.quiet_ms if hosts == 1 else self.linger_ms


@dataclass(frozen=True)
class MeterUse:
    """Meters of a study (all default meters if empty) and the rate of the tick tier in hertz."""

    use: tuple[str, ...] = given("a list of meters' names", ())
    tick_hz: float = 10.0


@dataclass(frozen=True)
class Goal:
    """The goal of a study in the five parts of the Goal/Question/Metric approach."""

    object: str = ""
    purpose: str = ""
    focus: str = ""
    viewpoint: str = ""
    context: str = ""


@dataclass(frozen=True)
class AnswerRules:
    """Rules for answers, from the table [answers]."""

    baseline: dict[str, Level] = given("a table", {})
    """Factor → baseline level. The default is the factor's first level."""
    family: str = ""
    """Description of the answers whose intervals are simultaneous."""
    margin: float | None = number("a number above 0 and below 1", lambda value: 0 < value < 1)
    """Relative difference below which two levels are equivalent, or None for no such test."""
    looks: int = given("1 or 2", 1, allows=(1, 2).__contains__)
    """Number of looks at a comparison. With 2, wattwire measures worse treatments again."""
    scale: str = given("a scale", "log", word="scale")
    """Scale of interactions, an entry of ANSWER_SCALES."""
    best_of: tuple[str, ...] = given(BEST_OF, ())
    """Factors whose combinations are ranked."""


@dataclass(frozen=True)
class Study:
    """A study with typed values. `document` is the merged TOML document."""

    name: str
    title: str = ""
    goal: Goal | None = None
    source: str = ""
    """Source of the published numbers, as a DOI."""
    published: str = ""
    """Name of the file with the published numbers."""
    factors: dict[str, tuple[Level, ...]] = field(default_factory=dict)
    fixed: dict[str, Level] = field(default_factory=dict)
    """Levels in the study's table [fixed]. `held` also contains the defaults."""
    plan: Plan = Plan()
    validity: ValidityLimits = ValidityLimits()
    meters: MeterUse = MeterUse()
    answers: AnswerRules = AnswerRules()
    questions: tuple[Question, ...] = ()
    excludes: tuple[dict[str, Any], ...] = ()
    """Partial treatments. The design excludes every treatment that matches one of them."""
    includes: tuple[dict[str, Any], ...] = ()
    """Partial treatments. If there are any, the design includes only the treatments that match one
    of them.
    """
    limits: tuple[Limit, ...] = ()
    variants: dict[str, Variant] = field(default_factory=dict)
    paper_path: tuple[Walk, ...] = ()
    shown: Shown = Shown()
    claims: tuple[Claim, ...] = ()
    """Statements of a publication that the study decides."""
    awaits: frozenset[str] = frozenset()
    """Middleware and languages in the study that do not have a folder yet."""
    rig: Rig = ONE_HOST
    flows: tuple[FlowSpec, ...] = ()
    """Flows that run at the same time. Without any, the pattern determines the flows."""
    request: Request | None = None
    """The command or the attached systems that `exec` measures instead of cells."""
    drive: Drive | None = None
    """The robot that obeys the messages of a flow as its commands; None if no robot drives."""
    document: dict[str, Any] = field(default_factory=dict)

    def request_of(self, treatment: Treatment) -> Request | None:
        """Return the request that a run of this treatment measures, with its variant's command."""
        variant = self.variants.get(str(treatment.get(VARIANT, "")))
        if self.request is None or variant is None:
            return self.request
        return replace(self.request, command=tuple(shlex.split(variant.command)))

    @property
    def settling_rounds(self) -> int:
        """Return the requested number of settling runs of each command; 0 for cells."""
        return self.request.warmup_runs if self.request else 0

    @property
    def heading(self) -> str:
        """Return the title. If it is empty, return the name, or "Campaign" without a name."""
        return self.title or self.name or "Campaign"

    @property
    def held(self) -> dict[str, Level]:
        """Return the level of every fixed key. Keys that the study omits have their default."""
        if self.request is not None:
            return {"pattern": PROCESSES}
        levels = {**DEFAULT_LEVELS, **self.fixed}
        for factor, names in (("network", self.rig.networks), ("placement", self.rig.placements)):
            if names:
                levels.setdefault(factor, next(iter(names)))
        if self.flows:
            del levels["payload_bytes"]
            levels = {**flow_levels(self.flows), **levels}
        elif not {"interval_s", "rate_hz"} & {*self.factors, *self.fixed}:
            levels["rate_hz"] = DEFAULT_RATE_HZ
        for factor, level in DEFAULT_COUNTS.items():
            if any(factor in pattern.factors for pattern in self.patterns):
                levels.setdefault(factor, level)
        return {key: level for key, level in levels.items() if key not in self.factors}

    def stated(self, table: str) -> Mapping[str, Any]:
        """Return a table of the study as written, without defaults."""
        written: Mapping[str, Any] = self.document.get(table, {})
        return written

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """Return the patterns of the study's treatments."""
        names = self.factors.get("pattern") or (self.fixed.get("pattern"),)
        if self.flows:
            names = tuple(dict.fromkeys(flow.pattern for flow in self.flows))
        return tuple(PATTERNS[str(name)] for name in names if name is not None)

    @property
    def roles(self) -> tuple[str, ...]:
        """Return the roles of the study's nodes; the nodes of a topology have one role."""
        if any(isinstance(flow, TopologyFlow) for flow in self.flows):
            return (MEMBER,)
        return tuple(dict.fromkeys(role for pattern in self.patterns for role in pattern.roles))
