"""Tests of stored studies, whether measured or imported, complete or partial."""

import pytest

from wattwire.model.errors import UsageError
from wattwire.model.stored_study import Part, stored_study
from wattwire.model.study import AnswerRules, Goal, MeterUse, Plan
from wattwire.model.validity import ValidityLimits
from wattwire.model.variants import Variant


def stored(**document):
    return stored_study({"name": "made-up", **document}, "c/study.json")


def test_what_a_study_leaves_out_has_the_defaults_of_its_types():
    study = stored()
    assert (study.name, study.title, study.heading) == ("made-up", "", "made-up")
    assert (study.plan, study.validity, study.meters) == (Plan(), ValidityLimits(), MeterUse())
    assert study.answers == AnswerRules() and study.answers.margin is None
    assert (study.goal, study.part, study.comparable) == (None, None, None)
    assert study.factors == {} and study.fixed == {} and study.questions == ()
    assert stored_study({}, "c").heading == "Campaign"


def test_values_are_typed_and_the_document_keeps_what_was_written():
    study = stored(
        plan={"blocks": 3, "duration_s": 2, "warmup_calls": "auto"},
        answers={"baseline": {"language": "cpp"}, "margin": 0.1, "best_of": ["language"]},
        goal={"purpose": "compare"}, fixed={"clients": 2}, only={"said": "x=1", "unasked": 4},
        variants={"a": {}, "b": {"levels": {"clients": 2}, "root": "/cells"}},
        titles={"language": {"cpp": "C++"}},
    )  # fmt: skip
    assert study.plan == Plan(blocks=3, duration_s=2.0)
    assert study.answers == AnswerRules({"language": "cpp"}, margin=0.1, best_of=("language",))
    assert study.goal == Goal(purpose="compare") and study.part == Part("x=1", 4)
    assert study.fixed == {"clients": 2} and study.held["payload_bytes"] == 64
    assert study.variants["b"] == Variant("/cells", {"clients": 2})
    assert study.titles == {"language": {"cpp": "C++"}}
    assert study.stated("plan") == {"blocks": 3, "duration_s": 2, "warmup_calls": "auto"}
    assert study.stated("validity") == {}


def test_nested_settings_are_keys_as_in_other_studies():
    study = stored(
        factors={"settings": {"depth": [1, 2]}}, fixed={"settings": {"nagle": True}},
        validity={"steal_max": 0.2},
    )  # fmt: skip
    assert study.factors == {"settings.depth": (1, 2)} and study.fixed == {"settings.nagle": True}
    assert study.stated("validity") == {"steal_max": 0.2}


def test_keys_of_later_versions_are_kept_in_the_document_alone():
    study = stored(
        novel=1, plan={"novel": 1, "blocks": 2}, question=[{"id": "Q", "novel": 1}],
        variants={"a": {"novel": 1}}, limit=[{"response": "lost", "max": 1, "novel": 1}],
    )  # fmt: skip
    assert (study.plan.blocks, study.questions[0].id, study.limits[0].max) == (2, "Q", 1.0)
    assert study.document["novel"] == 1 and study.stated("plan")["novel"] == 1


def test_a_null_is_a_value_that_is_not_there():
    study = stored(source=None, goal=None, answers={"margin": None}, plan={"blocks": None})
    assert (study.source, study.goal, study.answers.margin) == ("", None, None)
    assert study.plan.blocks == Plan.blocks


def test_an_imported_study_may_have_any_factor_level_and_question():
    study = stored(
        factors={"platform": ["arm", 2, None], "variant": ["a", "b"], "rate_hz": [1]},
        question=[{"id": "Q", "factors": ["platform", "absent"], "responses": ["energy_j.x.0"]}],
        answers={"baseline": {"platform": "arm", "absent": 3}}, plan={"primary": "absent"},
        paper_path=[{"response": "power", "by": ["platform"], "where": {"platform": 2}}],
        comparable=[],
    )  # fmt: skip
    assert study.factors == {"platform": ("arm", 2, None), "variant": ("a", "b"), "rate_hz": (1,)}
    assert type(study.factors["rate_hz"][0]) is int, "levels stay as they were stored"
    assert study.questions[0].factors == ("platform", "absent")
    assert study.answers.baseline["absent"] == 3 and study.plan.primary == "absent"
    assert study.paper_path[0].where == {"platform": (2,)} and study.comparable == ()


@pytest.mark.parametrize(
    "document",
    [
        {"plan": 3}, {"plan": {"blocks": "x"}}, {"factors": {"language": "cpp"}}, {"question": 3},
        {"answers": {"margin": "x"}}, {"validity": {"steal_max": "x"}}, {"limit": [3]},
        {"only": 3}, {"only": {"said": "x"}}, {"titles": []}, {"titles": {"a": 3}},
        {"comparable": 3}, {"title": 3}, {"variants": {"a": 3}}, {"meters": {"use": 3}},
        {"goal": [1]}, {"paper_path": [{}]}, {"table": [3]},
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_type_is_named_with_its_file(document):
    with pytest.raises(UsageError, match=r"^c/study\.json: "):
        stored(**document)
