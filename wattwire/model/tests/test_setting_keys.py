"""Tests that the dotted and the quoted spelling of setting keys are equivalent in every table."""

import json

import pytest

from wattwire.catalog.manifest import tomllib
from wattwire.model.errors import UsageError
from wattwire.model.setting_keys import with_flat_settings
from wattwire.model.study import apply_preset, parse_study

STUDY = """
[[question]]
id = "Q1"
factors = ["language", {name}]
responses = ["latency_p50_us"]
[factors]
{key}.writes = [1, 2]
language = ["python", "cpp"]
variant = ["base", "head"]
[fixed]
middleware = "loopback"
pattern = "topic"
{key}.nagle = true
[plan]
primary = {name}
[answers]
baseline = {{{key}.writes = 2, language = "cpp"}}
[exclude]
treatments = [{{{key}.writes = 1, language = "cpp"}}]
[include]
treatments = [{{{key}.writes = 2}}]
[variants.base]
[variants.head]
levels = {{{key}.nagle = false}}
[[limit]]
response = "latency_p99_us"
max = 5
where = {{{key}.writes = 2}}
[[paper_path]]
response = "cpu"
by = ["language"]
where = {{{key}.writes = [1, 2]}}
[presets.quick.fixed]
{key}.writes = 2
[presets.quick]
exclude.treatments = []
include.treatments = []
limit = []
paper_path = []
[presets.wide.factors]
{key}.writes = [2, 3]
"""


def document(spelling):
    text = STUDY.replace("{name}", '"settings.writes"').replace("{{", "{").replace("}}", "}")
    if spelling == "dotted":
        return tomllib.loads(text.replace("{key}", "settings"))
    for setting in ("writes", "nagle"):
        text = text.replace(f"{{key}}.{setting}", f'"settings.{setting}"')
    return tomllib.loads(text)


@pytest.mark.parametrize("preset", [None, "wide"])
def test_dotted_and_quoted_settings_are_the_same_study(preset):
    dotted, quoted = (apply_preset(document(way), preset, "s") for way in ("dotted", "quoted"))
    assert dotted == quoted
    assert json.dumps(dotted) == json.dumps(quoted), "in the same order, too"
    if preset is None:
        assert parse_study("s", dotted, "s") == parse_study("s", quoted, "s")
    levels = [1, 2] if preset is None else [2, 3]
    assert dotted["factors"]["settings.writes"] == levels
    assert dotted["answers"]["baseline"] == {"settings.writes": 2, "language": "cpp"}
    assert dotted["variants"]["head"]["levels"] == {"settings.nagle": False}


def test_a_preset_that_holds_a_dotted_setting_takes_it_out_of_the_factors():
    held = apply_preset(document("dotted"), "quick", "s")
    study = parse_study("s", {**held, "plan": {}}, "s")
    assert "settings.writes" not in study.factors
    assert study.fixed["settings.writes"] == 2 and study.fixed["settings.nagle"] is True


def test_the_studys_own_document_which_is_frozen_has_flat_keys():
    raw = document("dotted")
    raw.pop("presets")
    frozen = parse_study("s", raw, "s").document
    assert "settings" not in frozen["factors"] and "settings" not in frozen["fixed"]
    assert frozen["exclude"]["treatments"] == [{"settings.writes": 1, "language": "cpp"}]
    assert frozen["limit"][0]["where"] == {"settings.writes": 2}


def test_a_setting_in_both_spellings_is_refused():
    both = {"factors": {"settings.writes": [1], "settings": {"writes": [2]}}}
    with pytest.raises(UsageError, match=r"study: factors: found settings\.writes twice"):
        with_flat_settings(both, "study")


def test_settings_between_the_hosts_are_flattened_as_well():
    nested = {"fixed": {"outer_settings": {"via": "router"}, "settings": {"depth": 1}}}
    assert with_flat_settings(nested, "study") == {
        "fixed": {"outer_settings.via": "router", "settings.depth": 1}
    }


@pytest.mark.parametrize("wrong", [3, [], "x", {"settings": 3}, [3], [{"where": 4}]])
def test_a_table_of_another_shape_is_left_for_the_check_that_refuses_it(wrong):
    for key in ("factors", "fixed", "answers", "exclude", "limit", "paper_path", "variants"):
        assert with_flat_settings({key: wrong}, "study") == {key: wrong}
