"""Test that likely mistakes are reported, and that correct studies are not."""

from wattwire.design import cautions, expand
from wattwire.model.fields import merge
from wattwire.model.study import parse_study

STUDY = {
    "factors": {"loop": ["open", "closed"]},
    "fixed": {"cell": "loopback/python", "pattern": "pingpong", "count": 1000},
    "question": [
        {"id": "Q", "text": "Which?", "factors": ["loop"], "responses": ["latency_p50_us"]}
    ],
}


def said(**changes):
    study = parse_study("example", merge(STUDY, changes), "study.toml")
    return cautions(study, [treatment for treatment, _ in expand(study)])


def test_a_closed_loop_that_ends_within_its_warm_up_is_cautioned_against():
    (sentence,) = said(plan={"warmup_s": 1.0})
    assert "1\u202f000 calls" in sentence
    assert "of less than 1\u202f000 µs each end within" in sentence
    assert "plan.warmup_s = 1 s" in sentence


def test_a_closed_loop_of_enough_calls_and_an_open_loop_are_not():
    assert said(plan={"warmup_s": 0.01}) == []
    assert said(plan={"warmup_s": 0.0}) == []
    assert said(plan={"warmup_s": 1.0}, fixed={"count": 100_000}) == []
    assert said(plan={"warmup_s": 1.0}, factors={"loop": ["open"]}) == []


def test_a_study_that_compares_nothing_is_cautioned_against_where_it_could():
    (sentence,) = said(question=[])
    assert sentence.startswith("the study has no [[question]]")
    assert said(question=[], factors={"loop": ["open"]}) == []


def test_a_level_that_changes_nothing_is_named():
    closed = {"loop": ["closed"]}
    (sentence,) = said(factors=closed, fixed={"outstanding_max": 8})
    assert sentence.startswith("outstanding_max has no effect in closed loop")
    assert said(fixed={"outstanding_max": 8}) == [], "one of the two loops is open"
    literal = {"payload_bytes": 1024, "literal": "Hello World"}
    (sentence,) = said(fixed=literal)
    assert "payload_bytes has no effect, because literal 'Hello World'" in sentence
    assert said(fixed={"payload_bytes": 1024}) == []
    assert said(fixed={"literal": "Hello World"}) == []


def test_a_factor_that_no_question_names_is_named_with_its_average():
    (sentence,) = said(factors={"reply": ["echo", "ack"]})
    assert sentence.startswith("no question names reply, so an answer is an average")
    assert said(factors={"reply": ["echo"]}) == []
    question = {"id": "C", "factors": ["variant"], "responses": ["latency_p50_us"]}
    variants = {"loop": ["open"], "variant": ["base", "head"], "reply": ["echo", "ack"]}
    document = merge(STUDY, {"factors": variants}) | {"question": [question]}
    document["variants"] = {"base": {}, "head": {}}
    study = parse_study("example", document, "study.toml")
    assert cautions(study, [treatment for treatment, _ in expand(study)]) == []


def test_a_one_way_message_without_room_for_its_send_time_has_no_latency():
    open_loop = {"loop": ["open"]}
    (sentence,) = said(factors=open_loop, fixed={"pattern": "topic", "payload_bytes": 15})
    assert "payload_bytes = 16 or more" in sentence
    text = {"pattern": "topic", "payload_encoding": "text", "payload_bytes": 31}
    (sentence,) = said(factors=open_loop, fixed=text)
    assert "payload_bytes = 32 or more" in sentence
    assert said(factors=open_loop, fixed={"pattern": "topic", "payload_bytes": 16}) == []
    assert said(factors=open_loop, fixed={"pattern": "service", "payload_bytes": 0}) == []


def test_many_processes_are_counted_before_they_start():
    (sentence,) = said(factors={"loop": ["open"]}, fixed={"pattern": "service", "clients": 1000})
    assert "1\u202f001 processes" in sentence
    assert said(factors={"loop": ["open"]}, fixed={"pattern": "service", "clients": 99}) == []


def test_a_rate_that_no_sender_reaches_is_cautioned_against():
    topic = {"pattern": "topic", "rate_hz": 1_000_000.0}
    (sentence,) = said(factors={"loop": ["open"]}, fixed=topic)
    assert "rate_hz = 1\u202f000\u202f000 per publisher leaves 1 µs" in sentence
    (sentence,) = said(factors={"loop": ["open"]}, fixed={"interval_s": 1e-5})
    assert "rate_hz = 100\u202f000 per ping leaves 10 µs" in sentence
    assert said(factors={"loop": ["open"]}, fixed={"rate_hz": 1000.0}) == []
    (sentence,) = said(factors={"loop": ["closed"]}, fixed={"rate_hz": 1e6})
    assert sentence.startswith("rate_hz has no effect in closed loop")


def test_a_rate_in_closed_loop_has_no_effect():
    """A factor with two rates would measure the same treatment twice."""
    closed, rates = ["closed"], [50.0, 400.0]
    for said_of in (
        said(factors={"loop": closed}, fixed={"rate_hz": 50.0}),
        said(factors={"loop": closed, "rate_hz": rates}),
    ):
        assert any(one.startswith("rate_hz has no effect in closed loop") for one in said_of)
    assert said(fixed={"rate_hz": 50.0}) == [], "one of the two loops is open"


def test_rates_of_several_clients_that_exceed_the_cpus_together_are_cautioned_against():
    fixed = {"pattern": "service", "clients": 8, "rate_hz": 20_000.0}
    study = parse_study(
        "example", merge(STUDY, {"factors": {"loop": ["open"]}, "fixed": fixed}), ""
    )
    treatments = [treatment for treatment, _ in expand(study)]
    (sentence,) = cautions(study, treatments, cpus=2)
    assert sentence.startswith("8 clients at rate_hz = 20\u202f000 each offer 160\u202f000 Hz")
    assert "share 2 CPUs" in sentence
    assert cautions(study, treatments, cpus=4) == cautions(study, treatments) == []
    (sentence,) = said(factors={"loop": ["open"]}, fixed={**fixed, "cores": "same"})
    assert "share 1 CPU," in sentence
