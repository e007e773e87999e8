"""Parse and validate `study.toml` after a preset is merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from wattwire.model.deployment import EXEC, ONE_WAY, PLACED, parse_request
from wattwire.model.errors import UsageError, unknown
from wattwire.model.fields import merge, read_table
from wattwire.model.flows import FLOW, TOPOLOGY, FlowSpec, parse_flows, parse_topology
from wattwire.model.limits import parse_limits
from wattwire.model.output_requests import BREAK_EVEN, parse_shown
from wattwire.model.paper_path import parse_walks
from wattwire.model.paths import is_plain_name
from wattwire.model.publication.claims import CLAIM, parse_claims
from wattwire.model.questions import parse_questions
from wattwire.model.rig import ONE_HOST, Rig, read_rig
from wattwire.model.setting_keys import with_flat_settings
from wattwire.model.study.answerable import check_answerable, check_baselines, check_claims
from wattwire.model.study.checks import (
    check_answer_rules,
    check_commands,
    check_factors,
    check_flows,
    check_held,
    check_names,
    check_plan,
    check_settings_in_use,
)
from wattwire.model.study.drive import DRIVE, parse_drive
from wattwire.model.study.levels import RIG_FACTORS, check_level
from wattwire.model.study.study import ANSWER_SCALES, AnswerRules, Goal, MeterUse, Plan, Study
from wattwire.model.treatment import EACH, Level
from wattwire.model.validity import VALIDITY, ValidityLimits
from wattwire.model.variants import CheckLevel, check_variants, parse_variants
from wattwire.model.warm_up import AUTO_WORD

ANSWER_WORDS = {"scale": ANSWER_SCALES}
VERSION_MIN = "wattwire_min"
"""Key of a study with the smallest version of wattwire that can run it, e.g. "0.2"."""
TOP_KEYS = frozenset(
    {"title", "goal", "source", "published", "question", "factors", "fixed", "plan", "meters",
     "validity", "answers", "exclude", "include", "presets", "limit", "variants", "paper_path",
     "awaits", VERSION_MIN, "table", "figure", "ranking", BREAK_EVEN, FLOW, TOPOLOGY,
     CLAIM, DRIVE}
)  # fmt: skip
RIG = "rig"
"""Key of the document of the rig, which `wattwire run --rig` adds to the study."""
STORED_KEYS = TOP_KEYS | {EXEC, RIG}
"""Keys of a stored study. Only `wattwire exec` writes the table [exec]."""

SUBTABLES = (
    "factors", "fixed", "plan", "meters", "validity", "answers", "exclude", "include", "goal",
)  # fmt: skip

CALLED = {
    "window_s": "duration_s", "seconds": "duration_s", "repetitions": "blocks", "repeats": "blocks",
    "runs": "blocks", "warm_up_s": "warmup_s", "order_seed": "seed",
}  # fmt: skip
"""Common synonyms of keys → the keys of a study."""


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
    document = with_flat_settings(document, where)
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
    document = with_flat_settings(document, where)
    for key in document:
        if key not in STORED_KEYS:
            raise unknown(where, "key", key, TOP_KEYS)
    study = read_study(name, document, check_level, where)
    check_factors(study, where)
    check_answer_rules(study, where)
    check_flows(study, where)
    check_held(study, where)
    check_plan(study, where)
    check_names(study, where)
    check_commands(study, where)
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
    flows = _all_flows(document, where)
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
        drive=parse_drive(document.get(DRIVE), where),
        variants=parse_variants(document.get("variants", {}), check, where),
    )


def _all_flows(document: Mapping[str, Any], where: str) -> tuple[FlowSpec, ...]:
    """Return the flows of the tables `[[flow]]`, or those of the topology."""
    if TOPOLOGY not in document:
        return parse_flows(document.get(FLOW, []), ONE_WAY, PLACED, where)
    if document.get(FLOW):
        raise UsageError(
            f"{where}: both {TOPOLOGY} and [[{FLOW}]] are set; allowed: one of them. Move the "
            "flows to the topology, or delete it."
        )
    return parse_topology(document[TOPOLOGY], PLACED, where)


def parse_validity(table: Mapping[str, Any], where: str) -> ValidityLimits:
    """Parse the table [validity]. Raises UsageError for an unknown or invalid limit."""
    return read_table(ValidityLimits, table, where, dot=".")


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
