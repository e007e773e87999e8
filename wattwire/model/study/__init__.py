"""Studies: their value types, their parser and their checks."""

from wattwire.model.study.answerable import check_baselines
from wattwire.model.study.levels import (
    DEFAULT_COUNTS,
    DEFAULT_LEVELS,
    LEVEL_RULES,
    RIG_FACTORS,
)
from wattwire.model.study.parsing import (
    RIG,
    STORED_KEYS,
    TOP_KEYS,
    VERSION_MIN,
    apply_preset,
    parse_frozen_study,
    parse_study,
    parse_validity,
    presets_of,
    read_study,
)
from wattwire.model.study.study import (
    PROFILED,
    PROOF,
    TRACED,
    AnswerRules,
    Goal,
    MeterUse,
    Plan,
    Study,
)

__all__ = [
    "DEFAULT_COUNTS", "DEFAULT_LEVELS", "LEVEL_RULES", "PROFILED", "PROOF", "RIG", "RIG_FACTORS",
    "STORED_KEYS", "TOP_KEYS", "TRACED", "VERSION_MIN", "AnswerRules", "Goal", "MeterUse", "Plan",
    "Study", "apply_preset", "check_baselines", "parse_frozen_study", "parse_study",
    "parse_validity", "presets_of", "read_study",
]  # fmt: skip
