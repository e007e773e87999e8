"""Tests of `wattwire new FILE --from PATH`, which writes a study of a topology."""

from __future__ import annotations

import json
import os

import pytest
from rosbags import rosbag2
from rosbags.typesys import Stores, get_typestore

from wattwire.catalog import Catalog
from wattwire.catalog.cells import MEMBERS
from wattwire.catalog.manifest import read_toml
from wattwire.catalog.topologies import BYTES_MAX, with_topology
from wattwire.cli.main import main
from wattwire.design import make_plan
from wattwire.model.study import parse_study
from wattwire.run.resolve_cells import prepare

GRAPH = {
    "nodes": [
        {"node_name": "montreal", "publishers": [
            {"topic_name": "amazon", "msg_type": "stamped9_float32", "period_ms": 10},
            {"topic_name": "nile", "msg_type": "stamped_vector", "msg_size": 500, "period_ms": 40},
        ]},
        {"node_name": "lyon", "subscribers": [
            {"topic_name": "amazon", "msg_type": "stamped9_float32"},
            {"topic_name": "nile", "msg_type": "stamped_vector"},
        ]},
    ]
}  # fmt: skip


@pytest.fixture
def graph(tmp_path):
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(GRAPH), encoding="utf-8")
    return path


def written(path):
    return parse_study(path.stem, with_topology(read_toml(path), path), str(path))


def test_the_written_study_has_the_flows_of_its_source(tmp_path, graph):
    path = tmp_path / "mine" / "study.toml"
    assert main(["new", str(path), "loopback/python", "--from", str(graph)]) == 0
    study = written(path)
    assert [(f.name, f.payload_bytes, f.rate_hz) for f in study.flows] == [
        ("amazon", 56, 100.0), ("nile", 520, 25.0),
    ]  # fmt: skip
    prepared = prepare(study, Catalog(), None)
    assert len(prepared.treatments) == 1 and prepared.skipped == []
    assert len(make_plan(prepared.treatments, study.plan)) == study.plan.blocks
    assert (tmp_path / "mine" / "topology.toml").is_file()


def test_a_written_topology_is_read_as_its_source_was(tmp_path, graph):
    main(["new", str(tmp_path / "one.toml"), "--from", str(graph)])
    main(["new", str(tmp_path / "two.toml"), "--from", str(tmp_path / "one-topology.toml")])
    assert written(tmp_path / "one.toml").flows == written(tmp_path / "two.toml").flows


def test_without_cells_the_study_has_all_cells_with_members(tmp_path, graph):
    path = tmp_path / "mine.toml"
    assert main(["new", str(path), "--from", str(graph)]) == 0
    cells = written(path).factors["cell"]
    assert "loopback/python" in cells
    catalog = Catalog()
    assert all(MEMBERS in catalog.cell(str(name)).document["capabilities"] for name in cells)
    assert [question.factors for question in written(path).questions] == [("cell",)]


def test_cells_without_the_settings_of_the_qos_are_not_in_the_study(tmp_path, graph):
    document = json.loads(graph.read_text())
    for end in (document["nodes"][0]["publishers"][0], document["nodes"][1]["subscribers"][0]):
        end["qos_reliability"] = "best_effort"
    graph.write_text(json.dumps(document), encoding="utf-8")
    assert main(["new", str(tmp_path / "mine.toml"), "--from", str(graph)]) == 0
    assert "loopback/python" not in written(tmp_path / "mine.toml").factors["cell"]


def test_a_source_with_a_fault_writes_nothing(tmp_path, graph, capsys):
    document = json.loads(graph.read_text())
    document["nodes"][0]["publishers"][0]["period_ms"] = 0
    graph.write_text(json.dumps(document), encoding="utf-8")
    assert main(["new", str(tmp_path / "mine.toml"), "--from", str(graph)]) == 2
    assert "topic amazon: period_ms: found 0" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph.json"]


@pytest.mark.parametrize("name", ["no", "no.json", "no.jsonl", "no.bag", "folder", "file.yaml"])
def test_a_path_that_is_no_source_is_refused_with_every_kind_of_source(tmp_path, capsys, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.yaml").write_text("a: 1\n")
    assert main(["new", str(tmp_path / "mine.toml"), "--from", str(tmp_path / name)]) == 2
    message = " ".join(capsys.readouterr().err.split())
    assert message.startswith(f"wattwire: --from {tmp_path / name}: ")
    for kind in ("topics --campaign", "exec --topics", ".jsonl", ".bag", ".mcap", ".db3", "iRobot"):
        assert kind in message.partition("; allowed: ")[2]
    assert not (tmp_path / "mine.toml").exists()


def test_a_topology_file_that_exists_is_kept(tmp_path, graph, capsys):
    (tmp_path / "mine-topology.toml").write_text("kept")
    assert main(["new", str(tmp_path / "mine.toml"), "--from", str(graph)]) == 2
    assert "mine-topology.toml: this file already exists" in capsys.readouterr().err
    assert not (tmp_path / "mine.toml").exists()


def test_a_bag_becomes_a_study(tmp_path):
    store = get_typestore(Stores.ROS2_HUMBLE)
    with rosbag2.Writer(tmp_path / "bag", version=9) as writer:
        connection = writer.add_connection("/chat", "std_msgs/msg/String", typestore=store)
        for number in range(21):
            writer.write(connection, number * 50_000_000, bytes(40 + number % 2))
    path = tmp_path / "mine.toml"
    assert main(["new", str(path), "loopback/python", "--from", str(tmp_path / "bag")]) == 0
    (flow,) = written(path).flows
    assert (flow.name, flow.payload_bytes, flow.rate_hz) == ("chat", 40, 20.0)
    text = (tmp_path / "mine-topology.toml").read_text(encoding="utf-8")
    assert "bytes = 40 # mean; recorded: 40 to 41 bytes" in text
    assert "# A bag of ROS 2 names no nodes" in text


def test_only_a_bag_of_ros_2_has_the_comment_on_its_nodes(tmp_path, graph):
    main(["new", str(tmp_path / "mine.toml"), "--from", str(graph)])
    assert "ROS 2" not in (tmp_path / "mine-topology.toml").read_text(encoding="utf-8")


def test_a_name_of_two_lines_stays_in_its_comment(tmp_path, graph):
    source = graph.rename(tmp_path / "a\n[[node]].json")
    assert main(["new", str(tmp_path / "mine.toml"), "--from", str(source)]) == 0
    text = (tmp_path / "mine-topology.toml").read_text(encoding="utf-8")
    assert text.startswith("# The topology of a?[[node]].json. ")


def test_a_topic_with_an_unprintable_sign_is_refused(tmp_path, graph, capsys):
    graph.write_text(graph.read_text().replace("amazon", "ama\\u007fzon"), encoding="utf-8")
    assert main(["new", str(tmp_path / "mine.toml"), "--from", str(graph)]) == 2
    assert "allowed: the name of a topic, of printable characters" in capsys.readouterr().err
    assert not (tmp_path / "mine-topology.toml").exists()


def test_a_study_is_no_topology(tmp_path, capsys):
    main(["new", str(tmp_path / "study.toml")])
    capsys.readouterr()
    source = str(tmp_path / "study.toml")
    assert main(["new", str(tmp_path / "mine.toml"), "--from", source]) == 2
    assert f"topology {source}: unknown key" in capsys.readouterr().err


def test_a_study_may_have_quotes_in_its_name(tmp_path, graph):
    path = tmp_path / 'my "graph".toml'
    assert main(["new", str(path), "loopback/python", "--from", str(graph)]) == 0
    assert len(written(path).flows) == 2


@pytest.mark.parametrize("name", ["pipe.toml", "pipe.json", "pipe.bag", "pipe.mcap"])
def test_a_source_that_never_ends_is_refused(tmp_path, capsys, name):
    os.mkfifo(tmp_path / name)
    assert main(["new", str(tmp_path / "mine.toml"), "--from", str(tmp_path / name)]) == 2
    assert f"{name}: found no plain file" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["long.toml", "long.json"])
def test_a_source_that_is_too_long_is_refused(tmp_path, capsys, name):
    with (tmp_path / name).open("wb") as file:
        file.truncate(BYTES_MAX + 1)
    assert main(["new", str(tmp_path / "mine.toml"), "--from", str(tmp_path / name)]) == 2
    assert f"{name}: found more than {BYTES_MAX:,} bytes" in capsys.readouterr().err
