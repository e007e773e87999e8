"""Tests of the parser of studies, including defaults, presets, and errors with remedies."""

import copy

import pytest

from wattwire.model.errors import UsageError
from wattwire.model.fields import merge
from wattwire.model.study import apply_preset, parse_study
from wattwire.model.warm_up import AUTO

STUDY = {
    "factors": {"language": ["python", "cpp"], "pattern": ["topic"]},
    "fixed": {"middleware": "loopback", "rate_hz": 100},
    "plan": {"blocks": 3, "primary": "language"},
    "presets": {"quick": {"plan": {"blocks": 1}}},
}


def parsed(**changes):
    document = merge(apply_preset(STUDY, None, "study"), changes)
    return parse_study("example", document, "study.toml")


def refused(**changes) -> str:
    with pytest.raises(UsageError) as caught:
        parsed(**changes)
    return str(caught.value)


def test_a_study_is_parsed_with_its_defaults():
    study = parsed()
    assert study.factors["language"] == ("python", "cpp")
    assert study.held["rate_hz"] == 100.0
    assert study.held["clients"] == 1 and "clients" not in study.fixed
    assert study.plan.blocks == 3


def test_an_unknown_key_names_the_file_the_key_and_the_nearest():
    assert refused(plam={}) == (
        'study.toml: unknown key "plam"; known: answers, awaits, break_even, claim, drive, '
        "exclude, factors, figure, fixed, flow, goal, include, limit, meters, paper_path, plan, "
        "presets, published, question, ranking, source, table, title, topology, validity, "
        "variants, wattwire_min. "
        'Did you mean "plan"?'
    )
    assert 'plan: unknown key "bocks"' in refused(plan={"bocks": 3})
    for word, meant in (
        ("window_s", "duration_s"),
        ("repetitions", "blocks"),
        ("warmp_s", "warmup_s"),
    ):
        assert refused(plan={word: 3}).endswith(f'Did you mean "{meant}"?')
    assert "Did you mean" not in refused(plan={"tempo_s": 3}), "a unit makes nothing alike"
    assert 'unknown factor "langage"' in refused(factors={"langage": ["cpp"]})


def test_a_question_names_factors_and_one_that_is_held_drops_out():
    asked = {"id": "Q1", "factors": ["language", "clients"], "responses": ["lost"]}
    held = parsed(question=[asked], fixed={"clients": 2})
    assert [q.factors for q in held.questions] == [("language", "clients")]
    assert "question Q1: factors: clients has no level in [factors] or" in refused(question=[asked])
    said = refused(question=[asked, {"factors": ["langage"]}])
    assert said.startswith('study.toml: question 2: factors: unknown factor "langage"')
    assert said.endswith('Did you mean "language"?')


def test_a_level_of_the_wrong_type_says_what_was_found_and_what_is_allowed():
    message = refused(factors={"clients": [1, "two"]})
    assert message == "study.toml: factors.clients: found 'two'; allowed: an integer"
    assert "found True; allowed: an integer" in refused(factors={"clients": [True]})
    assert "found nan; allowed: an integer" in refused(factors={"payload_bytes": [float("nan")]})
    assert "allowed: 1 or more" in refused(factors={"clients": [0]})
    assert 'unknown level "topik"' in refused(factors={"pattern": ["topik"]})


def test_a_literal_beside_payload_sizes_is_refused():
    assert "literal 'Hello' replaces the payload" in refused(
        fixed={"literal": "Hello"}, factors={"payload_bytes": [64, 1024]}
    )
    both = {"literal": ["", "Hello"], "payload_bytes": [64]}
    assert "the factor payload_bytes" in refused(factors=both)
    assert parsed(fixed={"literal": "Hello", "payload_bytes": 5}).fixed["literal"] == "Hello"
    assert parsed(factors={"literal": [""], "payload_bytes": [64]})


def test_an_empty_factor_and_a_factor_that_is_no_list_are_refused():
    assert "the list is empty" in refused(factors={"clients": []})
    assert "a list of levels" in refused(factors={"clients": 2})
    assert "found a level twice" in refused(factors={"clients": [2, 2]})
    for levels in ([1, 1.0], [True, 1], ["1", 1], ["true", True]):
        assert "found a level twice" in refused(factors={"settings.x": levels}), levels


def test_a_key_that_is_varied_and_held_is_a_contradiction():
    assert "A study either varies a factor or holds it constant" in refused(
        fixed={"language": "cpp"}
    )


def test_a_contradictory_preset_names_the_preset_and_the_key():
    document = copy.deepcopy(STUDY)
    document["presets"]["bad"] = {"factors": {"clients": [1]}, "fixed": {"clients": 2}}
    with pytest.raises(UsageError, match="presets.bad: clients is set in both"):
        apply_preset(document, "bad", "study.toml")


def test_an_unknown_preset_is_answered_with_the_known_ones():
    with pytest.raises(UsageError, match='unknown preset "quik"; known: quick. Did you mean'):
        apply_preset(STUDY, "quik", "study.toml")


def test_a_preset_that_holds_a_factor_takes_it_out_of_the_design():
    document = copy.deepcopy(STUDY)
    document["presets"]["one"] = {"fixed": {"language": "cpp"}}
    merged = apply_preset(document, "one", "study.toml")
    assert "language" not in merged["factors"]
    assert parse_study("x", {**merged, "plan": {}}, "study.toml").fixed["language"] == "cpp"


def test_plans_that_cannot_work_are_refused():
    assert "plan.primary" in refused(plan={"primary": "clients"})
    assert "allowed: 1 or more" in refused(plan={"blocks": 0})
    assert "0 or more" in refused(plan={"cooldown_s": -1})
    assert "covers all of" in refused(plan={"duration_s": 1, "warmup_s": 2})
    assert "both interval_s and rate_hz" in refused(fixed={"interval_s": 0.1})


def test_a_study_must_say_which_cells_it_means():
    with pytest.raises(UsageError, match="the study names no cells"):
        parse_study("x", {"fixed": {"pattern": "topic"}}, "study.toml")


@pytest.mark.parametrize(
    "changes",
    [
        {"factors": 3}, {"fixed": 3}, {"plan": 3}, {"meters": 3}, {"validity": 3}, {"answers": 3},
        {"exclude": 3}, {"exclude": {"treatments": 3}}, {"exclude": {"treatments": [3]}},
        {"question": 3}, {"question": [3]}, {"title": 3}, {"meters": {"use": 3}},
        {"meters": {"tick_hz": 0}}, {"meters": {"tick_hz": 100_000}},
        {"answers": {"baselin": 3}}, {"answers": {"margin": -3}},
        {"answers": {"baseline": {"languag": "cpp"}}},
        {"fixed": {"rate_hz": float("nan")}}, {"fixed": {"rate_hz": float("inf")}},
        {"fixed": {"rate_hz": 1e10}}, {"fixed": {"clients": 100_000}},
        {"fixed": {"payload_bytes": 10**20}},
    ],
)  # fmt: skip
def test_anything_of_the_wrong_shape_or_size_is_refused_in_words(changes):
    assert "study.toml: " in refused(**changes)
    assert "known: " in refused(**changes) or "allowed: " in refused(**changes)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ({"stop_width": 1.5, "primary": "payload_bytes", "blocks": 20}, "below 1"),
        ({"stop_width": 0.05, "blocks_min": 5, "primary": "payload_bytes"}, "10 or more"),
        ({"stop_width": 0.05, "blocks": 8, "primary": "payload_bytes"}, "blocks_min"),
        ({"stop_width": 0.05, "blocks": 20}, "plan.primary"),
    ],
)
def test_a_rule_for_stopping_that_would_not_hold_is_refused(plan, words) -> None:
    document = {
        "factors": {"payload_bytes": [64, 128]},
        "fixed": {"cell": "loopback/python", "pattern": "topic"},
        "plan": plan,
    }
    with pytest.raises(UsageError, match=words):
        parse_study("t", document, "test")


def test_an_unknown_scale_of_interactions_is_refused() -> None:
    document = {
        "factors": {"payload_bytes": [64, 128]},
        "fixed": {"cell": "loopback/python", "pattern": "topic"},
        "answers": {"scale": "square"},
    }
    with pytest.raises(UsageError, match="log, plain"):
        parse_study("t", document, "test")


@pytest.mark.parametrize(
    "name", ["../x.csv", "/etc/x.csv", "a/b.csv", "a\\b.csv", ".x.csv", "x.json", "a\nb.csv"]
)
def test_published_numbers_are_a_file_in_the_studys_folder(name):
    assert "published: found" in refused(published=name)
    assert parsed(published="numbers.csv").document["published"] == "numbers.csv"


@pytest.mark.parametrize("presets", [5, "x", [{}], {"a": 5}, {"a": [1]}])
def test_presets_of_another_shape_are_refused_in_words(presets):
    document = {**STUDY, "presets": presets}
    for wanted in (None, "a"):
        with pytest.raises(UsageError, match="study.toml: presets"):
            apply_preset(document, wanted, "study.toml")


def test_the_warm_up_in_calls_is_found_stated_or_refused():
    assert parsed().plan.warmup_calls == AUTO
    assert parsed(plan={"warmup_calls": "auto"}).plan.warmup_calls == AUTO
    assert parsed(plan={"warmup_calls": 200}).plan.warmup_calls == 200
    assert parsed(plan={"warmup_calls": 0}).plan.warmup_calls == 0
    # A warm-up in seconds replaces the warm-up in calls.
    assert parsed(plan={"warmup_s": 1.0}).plan.warmup_calls == 0
    assert parsed(plan={"warmup_s": 1.0, "warmup_calls": "auto"}).plan.warmup_calls == AUTO
    assert '"auto", or the number of warm-up calls' in refused(plan={"warmup_calls": "long"})
    assert "0 or more" in refused(plan={"warmup_calls": -1})


@pytest.mark.parametrize(
    ("baseline", "words"),
    [
        ({"language": "rust"}, "baseline.language: found 'rust'; allowed: one of 'python', 'cpp'"),
        ({"settings.reliabilty": "best_effort"}, 'unknown factor "settings.reliabilty"; known: '),
        ({"clients": True}, "baseline.clients: found True; allowed: one of 1"),
    ],
)
def test_a_baseline_that_is_no_level_of_the_study_is_refused(baseline, words):
    document = {**STUDY, "fixed": {**STUDY["fixed"], "clients": 1}}
    for wrong in (
        {**document, "answers": {"baseline": baseline}},
        {**document, "presets": {"quick": {"answers": {"baseline": baseline}}}},
    ):
        with pytest.raises(UsageError) as caught:
            apply_preset(wrong, None, "study.toml")
        assert words in str(caught.value)


def test_a_baseline_may_be_a_level_of_a_preset_and_a_preset_may_leave_it_out():
    presets = {"more": {"factors": {"clients": [1, 4]}}, "less": {"factors": {"language": ["cpp"]}}}
    baseline = {"clients": 4, "language": "python", "rate_hz": 100.0}
    document = {**STUDY, "answers": {"baseline": baseline}, "presets": presets}
    for preset in (None, "more", "less"):
        assert apply_preset(document, preset, "s")["answers"]["baseline"] == baseline
