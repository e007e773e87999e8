"""Check that the tables of a study do not contradict each other."""

from __future__ import annotations

from wattwire.model.deployment import EXEC, ONE_WAY, PATTERNS
from wattwire.model.errors import UsageError, unknown
from wattwire.model.flows import EXCLUDED_KEYS, FLOW, FLOWS, OWN_KEYS, check_name, names_in
from wattwire.model.study.drive import DRIVE, check_drive
from wattwire.model.study.levels import may_vary
from wattwire.model.study.study import BEST_OF, STOP_BLOCKS_MIN, Plan, Study
from wattwire.model.treatment import SETTING, Level
from wattwire.model.variants import FACTOR as VARIANT
from wattwire.model.words import as_typed

TICK_HZ_MAX = 1000.0


def check_names(study: Study, where: str) -> None:
    """Raise UsageError for invalid factors in questions, [exclude] and [include]."""
    for position, question in enumerate(study.questions, 1):
        for name in question.factors:
            if not may_vary(name):
                place = f"{where}: question {question.id or position}: factors"
                raise unknown(place, "factor", name, study.factors)
    for table, treatments in (("exclude", study.excludes), ("include", study.includes)):
        for key in (key for treatment in treatments for key in treatment):
            if key != "because" and key not in study.factors:
                raise unknown(f"{where}: {table}.treatments", "factor", key, study.factors)


def check_answer_rules(study: Study, where: str) -> None:
    """Raise UsageError for names in [answers] that cannot be factors, or levels of another type."""
    for name in study.answers.best_of:
        if not may_vary(name):
            raise UsageError(
                f"{where}: answers.best_of: found {list(study.answers.best_of)!r}; allowed: "
                + BEST_OF
            )
    for key, level in study.answers.baseline.items():
        # A preset may fix a factor or omit levels, so its baseline may be unused here.
        levels = study.factors.get(key, ())
        if not may_vary(key):
            raise unknown(f"{where}: answers.baseline", "factor", key, study.factors)
        if levels and type(level) not in {type(value) for value in levels} | {int}:
            raise UsageError(
                f"{where}: answers.baseline.{key}: found {level!r}; allowed: one of "
                + ", ".join(map(repr, levels))
            )


def check_factors(study: Study, where: str) -> None:
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


def check_held(study: Study, where: str) -> None:
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


def check_plan(study: Study, where: str) -> None:
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
    if plan.layer_runs > plan.blocks:
        raise UsageError(
            f"{where}: plan.layer_runs: found {plan.layer_runs}; allowed: 0 to plan.blocks "
            f"({plan.blocks}), because a run that records layers is next to a timed run"
        )
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


def check_flows(study: Study, where: str) -> None:
    """Raise UsageError if the flows contradict the factors and the fixed levels of the study."""
    keys = {**study.factors, **study.fixed}
    if not study.flows:
        if FLOWS in keys:
            raise UsageError(
                f"{where}: {FLOWS} is set, but the study has no flow. Add a table [[{FLOW}]] for "
                f"each flow, or delete {FLOWS}."
            )
        return
    for key in EXCLUDED_KEYS:
        if key in keys:
            remedy = "set it in the tables [[flow]]" if key in OWN_KEYS else "delete it"
            raise UsageError(
                f"{where}: {key} is set, but every flow has its own payload, rate and pattern, "
                f"with one sender in open loop; {remedy}"
            )
    if "nodes" in keys and not any("nodes" in pattern.factors for pattern in study.patterns):
        raise UsageError(
            f"{where}: nodes is set, but no flow is a pipeline, so it has no effect; delete it"
        )
    levels = study.factors.get(FLOWS, (study.fixed[FLOWS],) if FLOWS in study.fixed else ())
    sets: dict[frozenset[str], Level] = {}
    for level in levels:
        names = names_in(level)
        for name in names:
            check_name(study.flows, name, f"{where}: {FLOWS} {level!r}")
        if len(set(names)) != len(names) or frozenset(names) in sets:
            other = sets.get(frozenset(names), level)
            raise UsageError(
                f"{where}: {FLOWS}: found a flow or a set of flows twice in {other!r} and "
                f"{level!r}; name each once"
            )
        sets[frozenset(names)] = level


def check_commands(study: Study, where: str) -> None:
    """Raise UsageError if the messages of a study with a drive cannot be a robot's commands."""
    if study.drive is None:
        return
    place = f"{where}: {DRIVE}"
    named = [flow for flow in study.flows if flow.name == study.drive.flow]
    if study.flows:
        check_name(study.flows, study.drive.flow, f"{place}.flow")
    elif study.drive.flow:
        raise UsageError(
            f"{place}.flow: found {study.drive.flow!r}, but the study has no table [[{FLOW}]]; "
            "delete it"
        )
    for key, allowed in ("pattern", ONE_WAY), ("loop", ("open",)), ("clients", (1,)):
        levels = _levels(study, key)
        if not study.flows and not set(levels) <= set(allowed):
            raise UsageError(
                f"{place}: {key}: found {', '.join(map(str, levels))}; allowed: "
                f"{' or '.join(map(str, allowed))}, because the robot is the only receiver of "
                "commands"
            )
    if study.flows:
        periods_s = {f"rate_hz {flow.rate_hz:g} of {flow.name}": 1 / flow.rate_hz for flow in named}
    else:
        periods_s = {f"interval_s {level}": float(level) for level in _levels(study, "interval_s")}
        rates = _levels(study, "rate_hz")
        periods_s |= {f"rate_hz {level}": 1 / float(level) for level in rates}
    if study.plan.warmup_s > 0:
        raise UsageError(
            f"{where}: plan.warmup_s: found {study.plan.warmup_s:g}, but the first lap begins with "
            "the first command; allowed: 0, because a robot does not warm up; delete it"
        )
    check_drive(study.drive, periods_s, study.plan.duration_s, where)


def _levels(study: Study, key: str) -> list[Level]:
    """Return the levels of a key, varied, held or of variants; none if the study has none."""
    if key in study.factors:
        return list(study.factors[key])
    held = [variant.over(study.held) for variant in study.variants.values()] or [study.held]
    return [levels[key] for levels in held if key in levels]


def check_settings_in_use(study: Study, where: str) -> None:
    """Raise UsageError if every flow replaces a setting of the study, which then has no effect."""
    levels = study.factors.get(FLOWS, (study.fixed[FLOWS],) if FLOWS in study.fixed else ())
    sent = {name for level in levels for name in names_in(level)}
    flows = [flow for flow in study.flows if not sent or flow.name in sent]
    places = [("factors", key) for key in study.factors] + [("fixed", key) for key in study.fixed]
    for name, variant in study.variants.items():
        places += [(f"variants.{name}: levels", key) for key in variant.levels]
    for place, key in places:
        setting = key.removeprefix(SETTING)
        if key != setting and flows and all(setting in flow.settings for flow in flows):
            names = ", ".join(flow.name for flow in flows)
            raise UsageError(
                f"{where}: {place}.{key}: the setting has no effect, because every flow has its "
                f"own ({names}). Delete {setting} from the settings of the flows that the study's "
                f"level applies to, or delete {key} from {place}."
            )
