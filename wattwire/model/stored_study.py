"""Parse the study in a campaign's folder, measured or imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from wattwire.model.errors import UsageError
from wattwire.model.flows import FLOW, FlowSpec
from wattwire.model.limits import Limit
from wattwire.model.output_requests import ShownFigure, ShownRanking, ShownTable
from wattwire.model.paper_path import Walk
from wattwire.model.publication.claims import CLAIM, Claim
from wattwire.model.questions import Question
from wattwire.model.setting_keys import with_flat_settings
from wattwire.model.study import STORED_KEYS, AnswerRules, MeterUse, Plan, Study, read_study
from wattwire.model.study.drive import DRIVE, Drive
from wattwire.model.treatment import Level
from wattwire.model.validity import VALIDITY, ValidityLimits
from wattwire.model.variants import Variant

PART = "only"
"""Key of a measured campaign's study that contains the requested part of the design."""
ADDED_KEYS = ("name", PART)
"""Keys that `wattwire run` adds to the study's document."""
_TABLES = {
    "plan": Plan, "meters": MeterUse, VALIDITY: ValidityLimits, "answers": AnswerRules,
    DRIVE: Drive,
}  # fmt: skip
_LISTS = {
    "question": Question, "limit": Limit, "paper_path": Walk, "table": ShownTable,
    "figure": ShownFigure, "ranking": ShownRanking, FLOW: FlowSpec,
    CLAIM: Claim,
}  # fmt: skip


@dataclass(frozen=True)
class Part:
    """The requested part of a design, with the typed option and the number of other treatments."""

    option: str
    unselected: int


@dataclass(frozen=True)
class StoredStudy(Study):
    """The study of a campaign, with defaults for missing keys.

    An imported study may have any factors and levels. The defaults of its `plan` and `validity` do
    not describe its runs. Keys of later versions are only in `document`.
    """

    part: Part | None = None
    """The requested part of the design, or None for the whole design."""
    titles: dict[str, dict[str, str]] = field(default_factory=dict)
    """Factor → level → title, from an imported study."""
    comparable: tuple[str, ...] | None = None
    """Columns of an imported table that can be factors, or None if a factor already varies."""


def stored_study(document: Mapping[str, Any], where: str) -> StoredStudy:
    """Parse the stored study of a campaign.

    The design is not validated, because an imported study may have any design. Raises UsageError
    for a value of the wrong type, such as after a manual change.
    """
    current = with_flat_settings(document, where)
    study = read_study(str(current.get("name", "")), _known(current), _any_level, where)
    part, comparable = current.get(PART), current.get("comparable")
    try:
        return StoredStudy(
            **{**vars(study), "document": current},
            part=Part(str(part["said"]), int(part["unasked"])) if part else None,
            titles={name: dict(titles) for name, titles in current.get("titles", {}).items()},
            comparable=None if comparable is None else tuple(map(str, comparable)),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"{where}: {PART}, titles or comparable are damaged ({error}). "
            "Restore the file from a copy."
        ) from error


def _any_level(_factor: str, level: Any, _where: str) -> Level:
    return level


def _known(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document without nulls and without keys that are unknown to this version."""
    known = {k: value for k, value in document.items() if k in STORED_KEYS and value is not None}
    for name, kind in _TABLES.items():
        if name in known:
            known[name] = _only(known[name], kind)
    for name, kind in _LISTS.items():
        if isinstance(known.get(name), list):
            known[name] = [_only(item, kind) for item in known[name]]
    if isinstance(known.get("variants"), Mapping):
        tables = known["variants"].items()
        known["variants"] = {name: _only(table, Variant) for name, table in tables}
    return known


def _only(table: Any, kind: Any) -> Any:
    """Return a table with only the keys of a dataclass, or any other value unchanged."""
    if not isinstance(table, Mapping):
        return table
    keys = {declared.name for declared in fields(kind)}
    return {key: value for key, value in table.items() if key in keys and value is not None}
