"""`wattwire new FILE --from` a graph that a probe watched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wattwire.catalog.bags import RECORDER, REMARKS
from wattwire.catalog.manifest import read_toml
from wattwire.catalog.topologies import with_topology
from wattwire.cli.main import main
from wattwire.cli.topics.recorded_topology import _flows, watched_topology
from wattwire.model.errors import UsageError
from wattwire.model.study import parse_study


def stream(topic: str, node: str, rate_hz: float | None, **changes: Any) -> dict[str, Any]:
    qos = {"reliability": "best_effort", "durability": "volatile", "history": "unknown", "depth": 0}
    return {
        "kind": "stream", "topic": topic, "node": node, "type": "pkg/msg/T", "messages": 10,
        "rate_hz": rate_hz, "bytes_mean": 100.4, "qos": qos, "window_s": 5.0, **changes,
    }  # fmt: skip


def reader(topic: str, node: str) -> dict[str, Any]:
    return {"kind": "reader", "topic": topic, "node": node}


def lines(folder: Path, *facts: dict[str, Any]) -> Path:
    path = folder / "graph.jsonl"
    path.write_text("".join(f"{json.dumps(fact)}\n" for fact in facts), encoding="utf-8")
    return path


def test_the_flows_have_the_nodes_rates_sizes_and_qos_of_the_graph(tmp_path: Path) -> None:
    path = lines(
        tmp_path,
        stream("/scan", "/left/lidar", 10.0),
        reader("/scan", "/slam"), reader("/scan", "/map"), reader("/scan", "/slam"),
        stream("/map", "/slam", None, messages=1),
        stream("/silent", "/slam", None, messages=0),
        {"kind": "remark", "text": "x"},
    )  # fmt: skip
    table = watched_topology(path)
    assert [node["name"] for node in table["node"]] == ["slam", RECORDER, "left_lidar", "map"]
    of_map, scan = table["flow"]
    qos = {"reliability": "best_effort", "durability": "volatile"}
    assert scan == {
        "topic": "/scan", "from": "left_lidar", "to": ["slam", "map"], "type": "pkg/msg/T",
        "bytes": 100, "rate_hz": 10.0, "qos": qos,
    }  # fmt: skip
    assert of_map["rate_hz"] == 0.2 and of_map["to"] == [RECORDER]
    assert "no subscription was seen" in of_map[REMARKS]["to"]


def test_the_written_topology_is_a_study(tmp_path: Path) -> None:
    path = lines(tmp_path, stream("/scan", "/lidar", 10.0, qos=None), reader("/scan", "/slam"))
    study = tmp_path / "mine" / "study.toml"
    assert main(["new", str(study), "loopback/python", "--from", str(path)]) == 0
    parsed = parse_study("mine", with_topology(read_toml(study), study), str(study))
    (flow,) = parsed.flows
    assert (flow.name, flow.payload_bytes, flow.rate_hz) == ("scan", 100, 10.0)


def test_a_source_without_messages_or_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="found no message of a topic"):
        watched_topology(lines(tmp_path, reader("/scan", "/slam")))
    (tmp_path / "graph.jsonl").write_text("[1]\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"line 1: found '\[1\]'; allowed: an object"):
        watched_topology(tmp_path / "graph.jsonl")


def test_rates_of_publishers_of_a_node_add_up_and_are_means_over_all_windows() -> None:
    fast, slow = stream("/a", "/n", 100.0), stream("/a", "/n", 50.0)
    (flow,) = _flows([(5.0, [fast, slow])], {})
    assert flow["rate_hz"] == 150.0
    (flow,) = _flows([(5.0, [fast, slow]), (5.0, [])], {})
    assert flow["rate_hz"] == 75.0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"kind": "stream", "topic": "/a"}\n', r"line 1: found a stream without node, type, .*"),
        (b'{"kind": "reader", "topic": "/a"}\n', r"line 1: found a reader without node; allowed:"),
        (b'{"kind": "x"}\n\xff\xfe\n', r"graph.jsonl: line 2: found .*; allowed: an object"),
    ],
)
def test_lines_of_another_program_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "graph.jsonl").write_bytes(data)
    with pytest.raises(UsageError, match=message):
        watched_topology(tmp_path / "graph.jsonl")


def test_a_campaign_with_variants_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    variants = ["--variant", "base=true", "--variant", "head=true"]
    main(["exec", *variants, "--repeat", "1", "--no-report", "--campaign", "c"])
    with pytest.raises(UsageError, match="found the variants base and head"):
        watched_topology(Path("c"))
