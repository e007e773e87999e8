"""Check that a study has the responses, factors and baselines that its questions require."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wattwire.model.errors import UsageError, nearest, unknown
from wattwire.model.flows import COLUMN
from wattwire.model.flows import check_name as check_flow_name
from wattwire.model.metrics import NODE, Metric, check_name, check_response
from wattwire.model.publication.claims import CLAIM, named_levels
from wattwire.model.questions import Question
from wattwire.model.study.study import Study
from wattwire.model.treatment import EACH


def check_answerable(study: Study, where: str) -> None:
    """Check that the runs provide the numbers for every question, limit and table of a study.

    Raises UsageError for an unknown response or flow, for a response without a number per run, and
    for a factor of a question that the study neither varies nor fixes.
    """
    for number, question in enumerate(study.questions, 1):
        _check_question(study, question, f"{where}: question {question.id or number}")
    for number, limit in enumerate(study.limits, 1):
        check_response(limit.response, f"{where}: limit {number}: response")
        _check_flow(study, limit.response, f"{where}: limit {number}: response")
    for number, walk in enumerate(study.paper_path, 1):
        check_response(walk.response, f"{where}: paper_path {number}: response")
        _check_flow(study, walk.response, f"{where}: paper_path {number}: response")
    for number, claim in enumerate(study.claims, 1):
        if claim.response:
            place = f"{where}: {CLAIM} {number}: response"
            check_response(claim.response, place)
            _check_flow(study, claim.response, place)
    for place, name in _shown_responses(study):
        check_name(name, f"{where}: {place}")
        _check_flow(study, name, f"{where}: {place}")


def _check_question(study: Study, question: Question, place: str) -> None:
    for name in question.factors:
        if name not in study.factors and name not in study.fixed:
            raise UsageError(
                f"{place}: factors: {name} has no level in [factors] or [fixed], so the study "
                "cannot answer the question for this factor. Add its levels to [factors], or "
                "remove it from the question."
            )
    for name in question.responses:
        place_of = f"{place}: responses"
        # A metric of nodes is summed over the nodes if it is a correlate.
        check = check_name if question.beside else check_response
        _check_role(study, name, check(name, place_of), place_of)
        _check_flow(study, name, place_of)
    for name in question.beside:
        check_name(name, f"{place}: beside")
        _check_flow(study, name, f"{place}: beside")


def _check_flow(study: Study, name: str, place: str) -> None:
    """Raise UsageError if `name` is a column of a flow that the study does not have."""
    of_flow = COLUMN.fullmatch(name)
    if of_flow:
        check_flow_name(study.flows, of_flow["flow"], f"{place}: {name}")


def _check_role(study: Study, name: str, metric: Metric, place: str) -> None:
    """Raise UsageError if `name` is a column of a role that no pattern of the study has."""
    _, _, node = name.partition(".")
    role, _, index = node.partition(".")
    if metric.of != NODE or not index:
        return
    roles = study.roles
    if role not in roles:
        raise UsageError(
            f"{place}: {name}: no pattern of this study has the role {role}; it has "
            f"{', '.join(roles)}"
        )


def _shown_responses(study: Study) -> Iterator[tuple[str, str]]:
    """Yield the position and the name of every response in tables, figures and rankings."""
    for number, table in enumerate(study.shown.tables, 1):
        for column_number, value in enumerate(table.values, 1):
            yield f"table {number}: values {column_number}: response", value.response
    for number, figure in enumerate(study.shown.figures, 1):
        for key in ("response", "against", "instead"):
            if getattr(figure, key):
                yield f"figure {number}: {key}", getattr(figure, key)
        for name in figure.responses:
            # A column of one hop has the name of its metric and the number of the hop.
            yield f"figure {number}: responses", name.partition(".hop.")[0]
    for number, ranking in enumerate(study.shown.rankings, 1):
        for name in ranking.product:
            yield f"ranking {number}: product", name


def check_baselines(document: Mapping[str, Any], where: str) -> None:
    """Check that every baseline names a factor of the study and a level of this factor.

    `document` includes the presets, because a baseline may be a level of a single preset. Raises
    UsageError with the position, the value and the allowed values.
    """
    levels_by_factor = _levels_by_factor(document)
    for place, table in _tables(document):
        baselines = _mapping(_mapping(table.get("answers")).get("baseline"))
        for factor, level in baselines.items():
            baseline_place = f"{where}: {place}answers.baseline"
            if factor not in levels_by_factor:
                raise unknown(baseline_place, "factor", factor, levels_by_factor)
            if not any(_same(level, known_level) for known_level in levels_by_factor[factor]):
                allowed = ", ".join(dict.fromkeys(map(repr, levels_by_factor[factor])))
                raise UsageError(
                    f"{baseline_place}.{factor}: found {level!r}; allowed: one of {allowed}"
                )


def check_claims(document: Mapping[str, Any], where: str) -> None:
    """Check that every claim names factors of the study and levels of these factors.

    `document` includes the presets, because a claim may need the sizes of a single preset. Raises
    UsageError with the position, the value and the allowed values.
    """
    levels_by_factor = _levels_by_factor(document)
    for prefix, table in _tables(document):
        for place, factor, level in named_levels(table.get(CLAIM)):
            claim_place = f"{where}: {prefix}{place}"
            if factor not in levels_by_factor:
                raise unknown(claim_place, "factor", factor, levels_by_factor)
            known = levels_by_factor[factor]
            # Only the rig of a run states the names that EACH represents.
            if EACH not in known and not any(_same(level, known_level) for known_level in known):
                allowed = ", ".join(dict.fromkeys(map(repr, known)))
                close = nearest(str(level), map(str, known))
                raise UsageError(
                    f"{claim_place}.{factor}: found {level!r}; allowed: {allowed}.{close}"
                )


def _levels_by_factor(document: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the levels of each factor in the study and in all its presets."""
    levels_by_factor: dict[str, list[Any]] = {}
    for _, table in _tables(document):
        for place in ("factors", "fixed"):
            for factor, levels in _mapping(table.get(place)).items():
                levels_by_factor.setdefault(factor, []).extend(
                    levels if isinstance(levels, list) else [levels]
                )
    return levels_by_factor


def _tables(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (prefix of the position, table) for the study and each of its presets."""
    yield "", document
    for name, preset in _mapping(document.get("presets")).items():
        yield f"presets.{name}: ", _mapping(preset)


def _mapping(table: Any) -> Mapping[str, Any]:
    """Return `table`, or an empty table for any other type, which other checks reject."""
    return table if isinstance(table, Mapping) else {}


def _same(level: Any, known_level: Any) -> bool:
    """Return whether two levels are equal. A boolean never equals a number."""
    return bool(level == known_level) and isinstance(level, bool) == isinstance(known_level, bool)
