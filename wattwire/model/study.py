"""Parse and validate `study.toml` after a preset is merged."""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from wattwire.model.answerable import check_answerable, check_baselines, check_claims
from wattwire.model.cores import CORES
from wattwire.model.cores import checked as checked_cores
from wattwire.model.deployment import (
    EXEC,
    ONE_WAY,
    PATTERNS,
    PLACED,
    PROCESSES,
    Pattern,
    Request,
    parse_request,
)
from wattwire.model.errors import UsageError, unknown
from wattwire.model.fields import WORDS, given, merge, number, read_table
from wattwire.model.flows import (
    FLOW,
    FLOWS,
    FlowSpec,
    check_flows,
    check_settings_in_use,
    flow_levels,
    parse_flows,
)
from wattwire.model.limits import Limit, parse_limits
from wattwire.model.output_requests import BREAK_EVEN, Shown, parse_shown
from wattwire.model.paper_path import Walk, parse_walks
from wattwire.model.paths import is_plain_name
from wattwire.model.publication.claims import CLAIM, Claim, parse_claims
from wattwire.model.questions import Question, parse_questions
from wattwire.model.rig import ONE_HOST, Rig, read_rig
from wattwire.model.treatment import EACH, Level, Treatment, is_setting
from wattwire.model.validity import VALIDITY, ValidityLimits, with_current_names
from wattwire.model.variants import FACTOR as VARIANT
from wattwire.model.variants import CheckLevel, Variant, check_variants, parse_variants
from wattwire.model.warm_up import AUTO, AUTO_WORD
from wattwire.model.words import as_typed

LEVEL_TYPES: dict[str, type] = {
    "middleware": str, "language": str, "cell": str, "pattern": str,
    "interval_s": float, "rate_hz": float, "clients": int,
    "payload_bytes": int, "payload_encoding": str, "loop": str, "pacing": str,
    "verify": str, "reply": str, "literal": str, "count": int, "timeout_ms": int,
    "outstanding_max": int, "action_feedback": int, "variant": str, "server_language": str,
    "nodes": int, "cpu_latency_us": int, "network": str, "placement": str, FLOWS: str,
    "bridge": str, "server_cell": str, CORES: str,
}  # fmt: skip
"""Names of factors and fixed levels → their types. The manifest validates `settings.NAME`."""

ALLOWED_LEVELS: dict[str, Collection[str]] = {
    "pattern": PATTERNS,
    "payload_encoding": ("bytes", "text", "record", "pointcloud"),
    "loop": ("open", "closed"),
    "pacing": ("kit", "native"),
    "verify": ("header", "full"),
    "reply": ("echo", "ack", "literal", "encrypt"),
}
MINIMUM_LEVELS: dict[str, float] = {
    "interval_s": 1e-6, "rate_hz": 1e-3, "clients": 1, "payload_bytes": 0,
    "count": 1, "timeout_ms": 1, "outstanding_max": 1, "action_feedback": 0, "nodes": 3,
    "cpu_latency_us": 0,
}  # fmt: skip
MAXIMUM_LEVELS: dict[str, float] = {
    "interval_s": 3600.0, "rate_hz": 1e6, "clients": 1000, "payload_bytes": 67_108_864,
    "count": 10_000_000, "timeout_ms": 3_600_000, "outstanding_max": 100_000,
    "action_feedback": 10_000, "nodes": 64, "cpu_latency_us": 2_000_000_000,
}  # fmt: skip
TICK_HZ_MAX = 1000.0
TRACED = "syscalls"
"""Value of `control` for a run that counts system calls."""
ANSWER_SCALES = ("log", "plain")
ANSWER_WORDS = {"scale": ANSWER_SCALES}
BEST_OF = 'a list of factors, e.g. ["middleware", "language"]'
STOP_BLOCKS_MIN = 10
"""Minimum number of blocks before a stop by width. With fewer blocks, stopping early would reduce
the coverage of the confidence intervals.
"""
DEFAULT_LEVELS: dict[str, Level] = {
    "clients": 1, "payload_bytes": 64, "payload_encoding": "bytes", "loop": "open",
    "pacing": "kit", "verify": "header", "reply": "echo", "literal": "", "count": 1000,
    "timeout_ms": 1000, "outstanding_max": 1, "action_feedback": 3,
}  # fmt: skip
DEFAULT_COUNTS: dict[str, Level] = {"nodes": 3}
"""Default levels of factors that determine the number of nodes in some patterns only."""
DEFAULT_RATE_HZ = 10.0
"""Default rate of a study without a rate or an interval."""

VERSION_MIN = "wattwire_min"
"""Key of a study with the smallest version of wattwire that can run it, e.g. "0.2"."""
TOP_KEYS = frozenset(
    {"title", "goal", "source", "published", "question", "factors", "fixed", "plan", "meters",
     "validity", "answers", "exclude", "include", "presets", "limit", "variants", "paper_path",
     "awaits", VERSION_MIN, "table", "figure", "ranking", BREAK_EVEN, FLOW, CLAIM}
)  # fmt: skip
RIG = "rig"
"""Key of the document of the rig, which `wattwire run --rig` adds to the study."""
STORED_KEYS = TOP_KEYS | {EXEC, RIG}
"""Keys of a stored study. Only `wattwire exec` writes the table [exec]."""
RIG_FACTORS = ("network", "placement")
"""Factors whose levels are names of the rig."""

SUBTABLES = (
    "factors", "fixed", "plan", "meters", "validity", "answers", "exclude", "include", "goal",
)  # fmt: skip

CALLED = {
    "window_s": "duration_s", "seconds": "duration_s", "repetitions": "blocks", "repeats": "blocks",
    "runs": "blocks", "warm_up_s": "warmup_s", "order_seed": "seed",
}  # fmt: skip
"""Common synonyms of keys → the keys of a study."""


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
    document: dict[str, Any] = field(default_factory=dict)

    def request_of(self, treatment: Treatment) -> Request | None:
        """Return the request that a run of this treatment measures, with its variant's command."""
        variant = self.variants.get(str(treatment.get(VARIANT, "")))
        if self.request is None or variant is None:
            return self.request
        return replace(self.request, command=tuple(shlex.split(variant.command)))

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
        """Return the roles of the study's nodes."""
        return tuple(dict.fromkeys(role for pattern in self.patterns for role in pattern.roles))


def presets_of(document: Mapping[str, Any], where: str) -> dict[str, Mapping[str, Any]]:
    """Return the presets of a study by name. Raises UsageError for an invalid structure."""
    presets = document.get("presets", {})
    if not isinstance(presets, Mapping):
        raise UsageError(f"{where}: presets: found {presets!r}; allowed: tables [presets.NAME]")
    for name, overlay in presets.items():
        if not isinstance(overlay, Mapping):
            raise UsageError(f"{where}: presets.{name}: found {overlay!r}; allowed: a table")
    return dict(presets)


def apply_preset(document: Mapping[str, Any], preset: str | None, where: str) -> dict[str, Any]:
    """Return the study with a preset merged into it and without the key `presets`.

    Raises UsageError for an unknown preset, an unknown key, and a key that is both varied and
    fixed.
    """
    document = with_current_names(document, where)
    presets = presets_of(document, where)
    check_baselines(document, where)
    check_claims(document, where)
    base = {k: v for k, v in document.items() if k != "presets"}
    if preset is None:
        return base
    if preset not in presets:
        raise unknown(where, "preset", preset, presets)
    overlay = presets[preset]
    for table, place in ((base, where), (overlay, f"{where}: presets.{preset}")):
        _check_shapes(table, place)
    for key in overlay:
        if key not in TOP_KEYS - {"presets"}:
            raise unknown(f"{where}: presets.{preset}", "key", key, TOP_KEYS - {"presets"})
    contradicting = set(overlay.get("factors", {})) & set(overlay.get("fixed", {}))
    if contradicting:
        key = min(contradicting)
        raise UsageError(
            f"{where}: presets.{preset}: {key} is set in both [factors] and [fixed]. A study "
            "either varies a factor or holds it constant. Delete one of the two."
        )
    merged = merge(base, overlay)
    for key in overlay.get("fixed", {}):  # a factor that a preset fixes is no longer a factor
        merged.get("factors", {}).pop(key, None)
    for key in overlay.get("factors", {}):
        merged.get("fixed", {}).pop(key, None)
    return merged


def parse_study(name: str, document: Mapping[str, Any], where: str) -> Study:
    """Parse and validate a study from its merged document, including its questions.

    Raises UsageError with the position, the value and the allowed values.
    """
    study = parse_frozen_study(name, document, where)
    check_answerable(study, where)
    check_settings_in_use(study, where)
    return study


def parse_frozen_study(name: str, document: Mapping[str, Any], where: str) -> Study:
    """Parse and validate a study from the frozen document of a campaign.

    Questions without a possible answer are accepted, so that the campaign can continue. Raises
    UsageError with the position, the value and the allowed values.
    """
    document = with_current_names(document, where)
    for key in document:
        if key not in STORED_KEYS:
            raise unknown(where, "key", key, TOP_KEYS)
    study = read_study(name, document, check_level, where)
    _check_factors(study, where)
    _check_baseline(study, where)
    check_flows(study, where)
    _check_held(study, where)
    _check_plan(study, where)
    _check_names(study, where)
    check_variants(study.variants, study.factors, where)
    return study


def read_study(name: str, document: Mapping[str, Any], check: CheckLevel, where: str) -> Study:
    """Parse a study from a document with known keys, without validation of its design.

    `check` returns the level of a factor, or raises UsageError for an invalid level.
    """
    _check_shapes(document, where)
    rig = read_rig(document[RIG], f"{where}: {RIG}") if RIG in document else ONE_HOST
    varied, held = _with_each(document.get("factors", {}), document.get("fixed", {}), rig, where)
    factors = _factors(varied, check, where)
    fixed = {key: check(key, level, f"{where}: fixed.{key}") for key, level in held.items()}
    flows = parse_flows(document.get(FLOW, []), ONE_WAY, PLACED, where)
    study = Study(name, factors=factors, fixed=fixed, rig=rig, flows=flows)
    plan = _plan_values(document.get("plan", {}), where)
    goal = document.get("goal")
    answers = read_table(
        AnswerRules, document.get("answers", {}), f"{where}: answers", ANSWER_WORDS, dot="."
    )
    known = {**factors, **study.held}
    return replace(
        study,
        title=document.get("title", ""),
        goal=Goal(**{f.name: str(goal.get(f.name, "")) for f in fields(Goal)}) if goal else None,
        source=document.get("source", ""),
        published=document.get("published", ""),
        plan=read_table(Plan, plan, f"{where}: plan", called=CALLED, dot="."),
        validity=parse_validity(document.get(VALIDITY, {}), f"{where}: {VALIDITY}"),
        meters=read_table(MeterUse, document.get("meters", {}), f"{where}: meters", dot="."),
        answers=answers,
        questions=parse_questions(document.get("question", []), where),
        excludes=tuple(document.get("exclude", {}).get("treatments", ())),
        includes=tuple(document.get("include", {}).get("treatments", ())),
        document=dict(document),
        limits=parse_limits(document.get("limit", []), factors, where),
        awaits=frozenset(document.get("awaits", ())),
        request=parse_request(document.get(EXEC), where),
        paper_path=parse_walks(document.get("paper_path", []), factors, study.held, check, where),
        shown=parse_shown(document, known, where),
        claims=parse_claims(document.get(CLAIM, []), known, answers.margin, check, where),
        variants=parse_variants(document.get("variants", {}), check, where),
    )


def parse_validity(table: Mapping[str, Any], where: str) -> ValidityLimits:
    """Parse the table [validity]. Raises UsageError for an unknown or invalid limit."""
    return read_table(ValidityLimits, table, where, dot=".")


def _check_names(study: Study, where: str) -> None:
    """Raise UsageError for invalid factors in questions, [exclude] and [include]."""
    for position, question in enumerate(study.questions, 1):
        for name in question.factors:
            if not _may_vary(name):
                place = f"{where}: question {question.id or position}: factors"
                raise unknown(place, "factor", name, study.factors)
    for table, treatments in (("exclude", study.excludes), ("include", study.includes)):
        for key in (key for treatment in treatments for key in treatment):
            if key != "because" and key not in study.factors:
                raise unknown(f"{where}: {table}.treatments", "factor", key, study.factors)


def _check_shapes(document: Mapping[str, Any], where: str) -> None:
    """Raise UsageError for a value whose structure its key does not allow."""
    for key in SUBTABLES:
        if not isinstance(document.get(key, {}), Mapping):
            raise UsageError(f"{where}: {key}: found {document[key]!r}; allowed: a table [{key}]")
    lists = {
        "question": document.get("question", []),
        "exclude.treatments": document.get("exclude", {}).get("treatments", []),
        "include.treatments": document.get("include", {}).get("treatments", []),
    }
    for key, value in lists.items():
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            raise UsageError(f"{where}: {key}: found {value!r}; allowed: a list of tables")
    for key in ("title", "published", "source", VERSION_MIN):
        if not isinstance(document.get(key, ""), str):
            raise UsageError(f"{where}: {key}: found {document[key]!r}; allowed: a string")
    published = document.get("published", "")
    if published and not (is_plain_name(published) and published.endswith(".csv")):
        raise UsageError(
            f"{where}: published: found {published!r}; allowed: the name of a .csv file in the "
            "study's folder, without a path"
        )
    awaits = document.get("awaits", [])
    if not isinstance(awaits, list) or not all(isinstance(name, str) for name in awaits):
        raise UsageError(
            f"{where}: awaits: found {awaits!r}; allowed: a list of names of middleware or "
            "languages"
        )


def _check_baseline(study: Study, where: str) -> None:
    """Raise UsageError for names in [answers] that cannot be factors, or levels of another type."""
    for name in study.answers.best_of:
        if not _may_vary(name):
            raise UsageError(
                f"{where}: answers.best_of: found {list(study.answers.best_of)!r}; allowed: "
                + BEST_OF
            )
    for key, level in study.answers.baseline.items():
        # A preset may fix a factor or omit levels, so its baseline may be unused here.
        levels = study.factors.get(key, ())
        if not _may_vary(key):
            raise unknown(f"{where}: answers.baseline", "factor", key, study.factors)
        if levels and type(level) not in {type(value) for value in levels} | {int}:
            raise UsageError(
                f"{where}: answers.baseline.{key}: found {level!r}; allowed: one of "
                + ", ".join(map(repr, levels))
            )


def _may_vary(name: object) -> bool:
    """Return whether `name` can be the name of a factor."""
    return isinstance(name, str) and (name in LEVEL_TYPES or is_setting(name))


def _with_each(
    factors: Mapping[str, Any], fixed: Mapping[str, Any], rig: Rig, where: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return [factors] and [fixed] with all names of the rig as the levels of a factor EACH.

    Without a rig, EACH remains as the only level. Raises UsageError if the rig has no names.
    """
    varied, held = dict(factors), dict(fixed)
    for factor, names in zip(RIG_FACTORS, (rig.networks, rig.placements), strict=True):
        if held.get(factor) == "":  # a preset cannot delete a factor of its study
            held.pop(factor)
        if EACH not in (varied.get(factor), held.get(factor)):
            continue
        if rig.is_from_file and not names:
            raise UsageError(
                f'{where}: {factor}: found "{EACH}", but the rig has no {factor}; add '
                f"[{factor}s.NAME] to the rig file"
            )
        held.pop(factor, None)
        varied[factor] = list(names) or [EACH]
    return varied, held


def _factors(
    table: Mapping[str, Any], check: CheckLevel, where: str
) -> dict[str, tuple[Level, ...]]:
    """Return the levels in [factors], validated by `check`.

    Raises UsageError for a factor whose levels are not a list.
    """
    for key, levels in table.items():
        if not isinstance(levels, list):
            raise UsageError(
                f"{where}: factors.{key}: found {levels!r}; allowed: a list of levels. "
                f"To hold it constant, set it in [fixed]."
            )
    return {
        key: tuple(check(key, level, f"{where}: factors.{key}") for level in levels)
        for key, levels in table.items()
    }


def _check_factors(study: Study, where: str) -> None:
    """Raise UsageError for a factor without levels or with a repeated level."""
    for key, levels in study.factors.items():
        if not levels:
            raise UsageError(
                f"{where}: factors.{key}: the list is empty; allowed: at least one level. "
                "Delete the factor or add levels."
            )
        # 1, 1.0, True and "1" are one level in a table, or have one name at --only.
        if len(set(levels)) != len(levels) or len(set(map(as_typed, levels))) != len(levels):
            stated = study.document["factors"][key]
            raise UsageError(
                f"{where}: factors.{key}: found a level twice in {stated!r}; name it once"
            )


def _check_commands(study: Study, where: str) -> None:
    """Raise UsageError unless each variant of a study of `exec` is a command and nothing else."""
    for name, variant in study.variants.items():
        if variant.root or variant.levels or not variant.command.strip():
            raise UsageError(
                f"{where}: variants.{name}: found {variant!r}; allowed for {EXEC}: a command"
            )


def _check_held(study: Study, where: str) -> None:
    """Raise UsageError if keys contradict each other or if the study names no pattern or cells."""
    for key in study.fixed:
        if key in study.factors:
            raise UsageError(
                f"{where}: {key} is set in both [factors] and [fixed]. A study either varies a "
                "factor or holds it constant. Delete one of the two."
            )
    keys = {*study.factors, *study.fixed}
    if study.request is not None:
        without_effect = keys - {VARIANT}
        if without_effect:
            raise UsageError(
                f"{where}: {EXEC} measures a command, so {min(without_effect)} has no effect; "
                "delete it"
            )
        _check_commands(study, where)
        return
    for name, variant in study.variants.items():
        if variant.command:
            raise UsageError(
                f"{where}: variants.{name}: command: only `wattwire exec --variant` measures "
                "commands; use root or levels"
            )
    if {"interval_s", "rate_hz"} <= keys:
        raise UsageError(f"{where}: both interval_s and rate_hz are set; delete one of the two")
    if "pattern" not in keys and not study.flows:
        raise UsageError(f"{where}: the study sets no pattern; allowed: {', '.join(PATTERNS)}")
    if "cell" not in keys and not {"middleware", "language"} <= keys:
        raise UsageError(
            f"{where}: the study names no cells. Set middleware and language, or cell."
        )
    # A literal replaces the payload (C-22), so the sizes in the summary would be wrong.
    literals = study.factors.get("literal", (study.fixed.get("literal", ""),))
    literal = next(filter(None, literals), None)
    if literal and "payload_bytes" in study.factors:
        raise UsageError(
            f"{where}: literal {literal!r} replaces the payload, so all levels of the factor "
            "payload_bytes would send the same message. Delete the literal or the factor."
        )


def check_level(key: str, level: Any, where: str) -> Level:
    """Validate the type and range of a level, and return it.

    Raises UsageError for an invalid level.
    """
    if is_setting(key):
        if isinstance(level, (str, int, float, bool)):
            return level
        raise UsageError(f"{where}: found {level!r}; allowed: a string, a number or a boolean")
    if key not in LEVEL_TYPES:
        raise unknown(where, "factor", key, [*LEVEL_TYPES, "settings.NAME", "outer_settings.NAME"])
    if key == CORES:
        return checked_cores(level, where)
    kind = LEVEL_TYPES[key]
    numeric = isinstance(level, (int, float)) and not isinstance(level, bool)
    if kind is float and numeric and math.isfinite(level):
        level = float(level)
    elif kind is float or not isinstance(level, kind) or isinstance(level, bool):
        raise UsageError(f"{where}: found {level!r}; allowed: {WORDS[kind]}")
    if key in ALLOWED_LEVELS and level not in ALLOWED_LEVELS[key]:
        raise unknown(where, "level", str(level), ALLOWED_LEVELS[key])
    if key in MINIMUM_LEVELS and level < MINIMUM_LEVELS[key]:
        raise UsageError(f"{where}: found {level!r}; allowed: {MINIMUM_LEVELS[key]:,} or more")
    if key in MAXIMUM_LEVELS and level > MAXIMUM_LEVELS[key]:
        raise UsageError(f"{where}: found {level!r}; allowed: {MAXIMUM_LEVELS[key]:,} or less")
    return level


def _plan_values(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the values in [plan] without "auto", which is the default.

    Raises UsageError for any other text as the number of warm-up calls.
    """
    calls = table.get("warmup_calls")
    if isinstance(calls, str) and calls != AUTO_WORD:
        raise UsageError(
            f'{where}: plan.warmup_calls: found {calls!r}; allowed: "{AUTO_WORD}", or the number '
            "of warm-up calls per client (0 for none)"
        )
    # A warm-up in seconds replaces the warm-up in calls.
    no_calls = {"warmup_calls": 0} if table.get("warmup_s") and calls is None else {}
    other_values = {k: v for k, v in table.items() if k != "warmup_calls" or v != AUTO_WORD}
    return {**other_values, **no_calls}


def _check_plan(study: Study, where: str) -> None:
    """Raise UsageError for values of [plan] that are out of range or contradict the design."""
    plan, tick_hz, held = study.plan, study.meters.tick_hz, study.held
    if plan.primary in held:
        raise UsageError(
            f"{where}: plan.primary names {plan.primary}, which is held at one level "
            f"({held[plan.primary]}). Name another factor (--set plan.primary=…), or keep it as a "
            f"factor and run only that level (--only {plan.primary}={held[plan.primary]})."
        )
    if plan.primary and plan.primary not in study.factors:
        raise unknown(f"{where}: plan.primary", "factor", plan.primary, study.factors)
    if plan.blocks < 1:
        raise UsageError(f"{where}: plan.blocks: found {plan.blocks}; allowed: 1 or more blocks")
    if tick_hz <= 0 or tick_hz > TICK_HZ_MAX:
        raise UsageError(
            f"{where}: meters.tick_hz: found {tick_hz:g}; allowed: a rate above 0 Hz and at most "
            f"{TICK_HZ_MAX:g} Hz"
        )
    _check_stop(plan, where)
    if plan.duration_s <= 0:
        raise UsageError(
            f"{where}: plan.duration_s: found {plan.duration_s}; allowed: a number above 0"
        )
    if plan.warmup_s >= plan.duration_s:
        raise UsageError(
            f"{where}: plan.warmup_s ({plan.warmup_s:g}) covers all of plan.duration_s "
            f"({plan.duration_s:g}); make the window longer or the warm-up shorter"
        )


def _check_stop(plan: Plan, where: str) -> None:
    """Raise UsageError for a stopping rule that reduces the coverage of confidence intervals."""
    if plan.stop_width >= 1:
        raise UsageError(
            f"{where}: plan.stop_width: found {plan.stop_width:g}; allowed: a number above 0 "
            "and below 1 (0.05 for ± 5 %), or 0 to run all blocks"
        )
    if plan.blocks_min < STOP_BLOCKS_MIN:
        raise UsageError(
            f"{where}: plan.blocks_min: found {plan.blocks_min}; allowed: "
            f"{STOP_BLOCKS_MIN} or more. With fewer blocks, the intervals of a study that stops "
            "by width cover the true value too rarely. To run fewer blocks, delete stop_width."
        )
    if not plan.stop_width:
        return
    if plan.blocks < plan.blocks_min:
        raise UsageError(
            f"{where}: plan.blocks: found {plan.blocks}; with stop_width, this is the maximum "
            f"number of blocks; allowed: blocks_min ({plan.blocks_min}) or more"
        )
    if not plan.primary:
        raise UsageError(
            f"{where}: plan.stop_width: the study stops by the ratios of its primary "
            "factor. Set plan.primary to a factor."
        )
