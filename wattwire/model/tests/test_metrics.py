"""Tests of the registry of metrics, including lookup, synonyms, and suggestions in errors."""

import pytest

from wattwire.model.errors import UsageError
from wattwire.model.metrics import (
    COMPARED,
    EVIDENCE,
    FIGURES,
    HARNESS,
    METRICS,
    OFFERED,
    check_name,
    check_response,
    find,
    metrics_in,
    suggestion,
)
from wattwire.model.metrics.registry import REGISTRY
from wattwire.model.study import parse_study

STUDY = {
    "factors": {"language": ["python", "cpp"]},
    "fixed": {"middleware": "loopback", "pattern": "topic"},
}


def refused(check, name):
    with pytest.raises(UsageError) as caught:
        check(name, "here")
    return str(caught.value)


def test_every_metric_has_one_entry():
    assert [metric.name for metric in REGISTRY] == list(METRICS)


@pytest.mark.parametrize("list_name", [OFFERED, COMPARED, FIGURES, EVIDENCE, HARNESS])
def test_every_list_has_an_order_without_ties(list_name):
    positions = [getattr(METRICS[name], list_name) for name in metrics_in(list_name)]
    assert positions and positions == sorted(set(positions))


@pytest.mark.parametrize("name", [*metrics_in(OFFERED), *metrics_in(COMPARED)])
def test_every_offered_and_every_compared_metric_can_be_a_response(name):
    assert check_response(name, "here").name == name


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("latency", "latency_p50_us"),
        ("latency_p99", "latency_p99_us"),
        ("cpu", "cpu_us_per_message"),
        ("memory_kib", "memory_kib_per_node"),
        ("lost", "loss_share"),
        ("power_w", "power_above_machine_w"),
        ("energy_message_j", "energy_uj_per_message"),
        ("schedule_late_p99_us", "schedule_late_p99_us"),
        ("memory_kib.subscriber.1", "memory_kib"),
        ("cpu_share.broker", "cpu_share"),
    ],
)
def test_a_metric_is_found_by_its_name_its_words_and_its_nodes(word, name):
    assert find(word) is METRICS[name]
    assert check_response(word, "here").name == name


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("latency_p98_us", "latency_p99_us"),
        ("p99", "latency_p99_us"),
        ("cpu_us_per_massage", "cpu_us_per_message"),
        ("memory_kib_pernode", "memory_kib_per_node"),
    ],
)
def test_a_misspelt_metric_is_refused_with_the_one_that_was_meant(word, meant):
    assert refused(check_response, word) == (
        f'here: unknown response "{word}". Did you mean "{meant}"?'
    )


@pytest.mark.parametrize(
    "word",
    ["", "nonsense", "verdict", "outcome", "block", "cpu_share.pubisher.0", "cpu_share.publisher",
     "latency_p50_us.client.0", "cpu_share.publisher.x"],
)  # fmt: skip
def test_what_is_no_number_of_a_run_or_node_is_no_response(word):
    assert find(word) is None
    assert f'unknown response "{word}"' in refused(check_name, word)


def test_a_metric_of_nodes_asks_for_the_node_and_one_of_system_calls_for_another_place():
    assert "cpu_share.publisher.0" in refused(check_response, "cpu_share")
    assert "answers do not use these runs" in refused(check_response, "syscalls_per_message")
    assert check_name("syscalls_per_message", "here").unit == ""


def test_a_suggestion_may_come_from_other_names():
    assert suggestion("colour", ["color", "size"]) == ' Did you mean "color"?'
    assert suggestion("zzzz") == ""


def test_every_place_of_a_study_that_names_a_response_is_checked():
    asked = {"id": "Q1", "factors": ["language"], "responses": ["latency_p50_us"]}
    wrong = "latncy_p50_us"
    places = {
        "question Q1: responses": {"question": [{**asked, "responses": [wrong]}]},
        "question Q1: beside": {"question": [{**asked, "beside": [wrong]}]},
        "limit 1: response": {"limit": [{"response": wrong, "max": 1}]},
        "paper_path 1: response": {"paper_path": [{"response": wrong, "by": ["language"]}]},
        "table 1: values 1: response": {
            "table": [{"title": "T", "rows": "language", "values": [{"response": wrong}]}]
        },
        "figure 1: instead": {
            "figure": [{"title": "T", "kind": "box", "response": "cpu", "instead": wrong}]
        },
        "figure 1: responses": {
            "figure": [
                {
                    "title": "T",
                    "kind": "stacked",
                    "by": "language",
                    "responses": ["cpu", f"{wrong}.hop.2"],
                }
            ]
        },
        "ranking 1: product": {"ranking": [{"title": "T", "product": ["cpu", wrong]}]},
    }
    for place, changes in places.items():
        with pytest.raises(UsageError) as caught:
            parse_study("s", {**STUDY, **changes}, "study.toml")
        assert str(caught.value) == (
            f'study.toml: {place}: unknown response "{wrong}". Did you mean "latency_p50_us"?'
        )


def test_a_column_of_one_hop_is_refused_with_where_it_is_shown():
    assert "only a [[figure]] of the kind “stacked”" in refused(
        check_response, "latency_p50_us.hop.1"
    )
    hops = ["latency_p50_us.hop.1", "relay_time_p50_us.hop.1"]
    figure = {"title": "T", "kind": "stacked", "by": "language", "responses": hops}
    parse_study("s", {**STUDY, "figure": [figure]}, "study.toml")


def test_a_role_that_the_studys_pattern_lacks_is_refused():
    asked = {"id": "Q1", "factors": ["language"], "responses": ["memory_kib.client.0"]}
    with pytest.raises(UsageError, match="has the role client; it has publisher, subscriber"):
        parse_study("s", {**STUDY, "question": [asked]}, "study.toml")
    asked["responses"] = ["memory_kib.subscriber.0"]
    parse_study("s", {**STUDY, "question": [asked]}, "study.toml")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("loss.flow.command", "loss_share.flow.command"),
        ("latency_p50.flow.image", "latency_p50_us.flow.image"),
        ("memory_kb.client.0", "memory_kib.client.0"),
    ],
)
def test_a_misspelt_metric_of_a_column_gets_a_similar_column(word, meant):
    assert refused(check_name, word).endswith(f' Did you mean "{meant}"?')
    assert find(meant)
