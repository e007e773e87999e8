"""Test the flows of a study: levels, parts, deployment, and the rejection of contradictions."""

import pytest

from wattwire.design import expand
from wattwire.model.deployment import deployment_of
from wattwire.model.errors import UsageError
from wattwire.model.flows import flow_levels, flow_parts, has_flow_of, parse_flows
from wattwire.model.flows.study_flows import FLOWS_MAX
from wattwire.model.metrics import find
from wattwire.model.rig import read_rig
from wattwire.model.study import parse_study
from wattwire.model.treatment import Treatment

COMMAND = {"name": "command", "payload_bytes": 64, "rate_hz": 50}
IMAGE = {"name": "image", "payload_bytes": 1_000_000, "rate_hz": 30}
RIG = {
    "hosts": {"robot": {"kind": "netns"}, "edge": {"kind": "netns"}},
    "networks": {"native": {}},
    "placements": {"apart": {"sender": "robot", "receiver": "edge", "relay": "edge"}},
}
CELLS = dict.fromkeys(("publisher", "subscriber", "source", "relay", "sink"), "x/y")


def parsed(flows=(COMMAND, IMAGE), fixed=None, **changes):
    document = {
        "flow": [dict(flow) for flow in flows],
        "factors": {"flows": ["command", "command+image"]},
        "fixed": {"cell": "loopback/python", **(fixed or {})},
        **changes,
    }
    return parse_study("example", document, "study.toml")


def refused(*arguments, **changes) -> str:
    with pytest.raises(UsageError) as caught:
        parsed(*arguments, **changes)
    return str(caught.value)


def treatments(study):
    return [treatment for treatment, _ in expand(study)]


def without(flow, key):
    return {name: value for name, value in flow.items() if name != key}


def test_a_treatment_has_a_part_for_each_of_its_flows():
    alone, both = treatments(parsed())
    assert [part.name for part in flow_parts(alone)] == ["command"]
    parts = flow_parts(both)
    assert [part.name for part in parts] == ["command", "image"]
    assert [part.treatment["payload_bytes"] for part in parts] == [64, 1_000_000]
    assert [part.treatment["rate_hz"] for part in parts] == [50.0, 30.0]
    assert len({part.token("ww00") for part in parts}) == 2
    assert "payload_bytes" not in dict(both.levels)


def test_the_identity_of_a_treatment_contains_its_flows():
    keys = {treatments(parsed(flows=[COMMAND, {**IMAGE, "rate_hz": rate}]))[1].key
            for rate in (10, 30)}  # fmt: skip
    assert len(keys) == 2


def test_without_factor_all_flows_are_sent():
    study = parsed(factors={"language": ["python"]}, fixed={"cell": ""})
    (treatment,) = treatments(study)
    assert treatment["flows"] == "command+image"


def test_a_study_without_flows_has_no_level_of_flows():
    document = {"factors": {"clients": [1]}, "fixed": {"cell": "x/y", "pattern": "topic"}}
    (treatment,) = treatments(parse_study("example", document, "study.toml"))
    assert not any("flow" in key for key, _ in treatment.levels)
    (part,) = flow_parts(treatment)
    assert (part.name, part.treatment, part.token("ww00")) == ("", treatment, "ww00")


def test_each_flow_has_its_own_nodes_and_the_name_of_the_study():
    study = parsed(flows=[COMMAND, {**IMAGE, "pattern": "pipeline"}])
    deployment = deployment_of(treatments(study)[1], CELLS)
    assert [process.name for process in deployment.processes] == [
        "publisher-0", "subscriber-0", "source-0", "relay-0", "sink-0",
    ]  # fmt: skip
    assert [(flow.name, flow.nodes) for flow in deployment.flows] == [
        ("command", (0, 1)), ("image", (2, 3, 4)),
    ]  # fmt: skip
    assert deployment.listening("subscriber", "sink") == {1, 3, 4}
    assert deployment.listening("publisher", "sink") == {0, 3, 4}
    listening = deployment.listening("publisher", "sink")
    connections = [deployment.connects_to(node, listening) for node in range(5)]
    assert connections == [set(), {0}, {3}, {4}, set()]


def test_nodes_of_one_role_in_several_flows_have_distinct_processes():
    deployment = deployment_of(treatments(parsed())[1], CELLS)
    assert [node.process for node in deployment.nodes] == [
        "publisher-0", "subscriber-0", "publisher-1", "subscriber-1",
    ]  # fmt: skip
    assert [node.node for node in deployment.nodes] == [0, 1, 2, 3]
    assert [deployment.other_side(node) for node in range(4)] == [[1], [0], [3], [2]]


def test_the_ends_of_a_flow_can_change_places():
    command = {**COMMAND, "sender": "receiver", "receiver": "sender"}
    study = parsed(flows=[command, IMAGE])
    rig = read_rig(RIG, "rig.toml")
    treatment = treatments(parsed(flows=[command, IMAGE], rig=RIG))[1]
    deployment = deployment_of(treatment, CELLS, (), rig)
    hosts = {node.process: deployment.host_of(node) for node in deployment.nodes}
    assert hosts == {
        "publisher-0": "edge", "subscriber-0": "robot", "publisher-1": "robot",
        "subscriber-1": "edge",
    }  # fmt: skip
    assert study.flows[0].sender == "receiver"


def test_flows_of_one_name_are_rejected():
    text = refused([COMMAND, {**IMAGE, "name": "command"}])
    assert "found 2 flows with the name command; allowed: one" in text


@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_a_flow_without_sender_or_receiver_is_rejected(end):
    text = refused([{**COMMAND, end: ""}, IMAGE])
    assert f"flow command: {end}: found nothing; allowed: a key of the placements" in text
    assert 'placement key (a placement maps it to a host) "recever"' in refused(
        [{**COMMAND, end: "recever"}, IMAGE]
    )


@pytest.mark.parametrize("key", ["payload_bytes", "rate_hz"])
def test_a_flow_needs_a_payload_and_a_rate(key):
    assert f"flow image: {key}: found nothing; allowed:" in refused([COMMAND, without(IMAGE, key)])
    assert f"flow image: {key}: found -1" in refused([COMMAND, {**IMAGE, key: -1}])


def test_a_name_is_plain_and_a_pattern_has_no_replies():
    assert "allowed: a name of letters" in refused([{**COMMAND, "name": "a+b"}, IMAGE])
    text = refused([{**COMMAND, "pattern": "service"}, IMAGE])
    assert 'flow command: pattern: unknown pattern "service"; known: pipeline, topic' in text


def test_an_unknown_flow_in_a_level_is_rejected():
    text = refused(factors={"flows": ["command", "command+imag"]})
    assert "flows 'command+imag': unknown flow \"imag\"; known: command, image." in text
    assert text.endswith('Did you mean "image"?')
    twice = refused(factors={"flows": ["command+image", "image+command"]})
    assert "found a flow or a set of flows twice" in twice
    assert "twice" in refused(factors={"flows": ["command+command"]})


@pytest.mark.parametrize("table", ["question", "limit", "figure"])
def test_an_unknown_flow_in_a_response_is_rejected(table):
    name = "latency_p50_us.flow.imag"
    entries = {
        "question": {"text": "?", "factors": ["flows"], "responses": [name]},
        "limit": {"response": name, "max": 5},
        "figure": {"title": "F", "kind": "box", "response": name, "by": "flows"},
    }
    text = refused(**{table: [entries[table]]})
    assert f'{name}: unknown flow "imag"; known: command, image' in text
    plain = {"factors": {"clients": [1, 2]}, "fixed": {"cell": "x/y", "pattern": "topic"}}
    entry = {"text": "?", "factors": ["clients"], "responses": [name]}
    with pytest.raises(UsageError, match=r"the study has no flow imag, because it has no table"):
        parse_study("example", {**plain, "question": [entry]}, "study.toml")


def test_only_metrics_of_flows_have_columns_of_flows():
    assert find("latency_p99_us.flow.command").name == "latency_p99_us"
    assert find("cpu_us_per_message.flow.command") is None
    assert has_flow_of("lost.flow.image", {"flows": "command+image"})
    assert not has_flow_of("lost.flow.image", {"flows": "command"})


def test_levels_that_each_flow_has_for_itself_are_rejected():
    assert "payload_bytes is set, but every flow has its own" in refused(
        fixed={"payload_bytes": 64}
    )
    assert "set it in the tables [[flow]]" in refused(fixed={"rate_hz": 9})
    assert "loop is set" in refused(fixed={"loop": "closed"})
    assert "nodes is set, but no flow is a pipeline" in refused(fixed={"nodes": 4})
    plain = {"factors": {"flows": ["a"]}, "fixed": {"cell": "x/y", "pattern": "topic"}}
    with pytest.raises(UsageError, match="flows is set, but the study has no flow"):
        parse_study("example", plain, "study.toml")


def test_too_many_flows_are_refused_and_the_parts_of_many_hold_only_their_own_levels():
    many = [{**COMMAND, "name": f"f{n}"} for n in range(FLOWS_MAX)]
    flows = parse_flows(many, ("topic",), ("sender", "receiver"), "x")
    parts = flow_parts(Treatment.of({}, flow_levels(flows)))
    assert len(parts) == FLOWS_MAX and max(len(part.treatment.levels) for part in parts) < 20
    assert {(part.of, part.position) for part in parts} == {
        (FLOWS_MAX, n) for n in range(FLOWS_MAX)
    }
    with pytest.raises(UsageError, match=f"allowed: {FLOWS_MAX} or less"):
        parse_flows([*many, {**COMMAND, "name": "more"}], ("topic",), ("sender", "receiver"), "x")


def test_a_flow_has_settings_of_its_own():
    command = {**COMMAND, "settings": {"reliability": "reliable", "depth": 1}}
    study = parsed([command, IMAGE], fixed={"settings.depth": 10, "settings.rate": 2})
    _, both = treatments(study)
    own, other = flow_parts(both)
    assert own.treatment.settings == {"reliability": "reliable", "depth": 1, "rate": 2}
    assert other.treatment.settings == {"depth": 10, "rate": 2}
    assert both.settings == {"depth": 10, "rate": 2}
    assert both.key != treatments(parsed(fixed={"settings.depth": 10, "settings.rate": 2}))[1].key
    told = refused([{**COMMAND, "settings": {"depth": [1, 2]}}])
    assert "flow command: settings.depth: found [1, 2]" in told


def test_a_setting_that_every_flow_replaces_is_rejected():
    own = [{**flow, "settings": {"reliability": "reliable"}} for flow in (COMMAND, IMAGE)]
    levels = ["reliable", "best_effort"]
    varied = {"flows": ["command", "command+image"], "settings.reliability": levels}
    text = refused(own, factors=varied)
    assert "factors.settings.reliability: the setting has no effect" in text
    assert "(command, image)" in text
    text = refused(own, fixed={"settings.reliability": "reliable"})
    assert "fixed.settings.reliability: the setting has no effect" in text
    slow = {"levels": {"settings.reliability": "reliable"}}
    text = refused(own, factors={"variant": ["a", "b"]}, variants={"a": slow, "b": {}})
    assert "variants.a: levels.settings.reliability: the setting has no effect" in text
    # Only command is ever sent, so image does not use the level either.
    assert "no effect" in refused([own[0], IMAGE], factors={**varied, "flows": ["command"]})
    # A flow without a setting of its own uses the study's level.
    assert parsed([own[0], IMAGE], factors=varied).factors["settings.reliability"]
