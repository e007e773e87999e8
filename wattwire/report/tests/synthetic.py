"""Write a simulated campaign to disk for tests.

`FAST` uses `CPU_RATIO` times the CPU time per message of `SLOW` and has `LATENCY_RATIO` times its
latency. Memory is 20,000 KiB for `FAST` and 41,000 KiB for `SLOW`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from wattwire.model.tests.deployments import deployment_of_nodes
from wattwire.store import Campaign
from wattwire.store.files import write_table

CPU_RATIO = 0.30
LATENCY_RATIO = 0.45
FAST, SLOW = "swift", "python"
ROLES = {
    "topic": ("publisher", "subscriber"),
    "service": ("server", "client"),
    "action": ("action_server", "action_client"),
}
MEMORY_KIB = {FAST: 20_000.0, SLOW: 41_000.0}
SECOND = 1_000_000_000
EPOCH_NS = 1_700_000_000 * SECOND
WRITTEN_AT = "2024-01-01T00:00:00"
RUN_S, WAITED_S = 25.0, 3.0
"""Duration of each run and of the wait for a quiet machine before it, in seconds."""


@dataclass
class Shape:
    """Size and effects of the synthetic campaign."""

    blocks: int = 3
    duration_s: float = 20.0
    intervals_s: tuple[float, ...] = (0.05, 0.2)
    clients: tuple[int, ...] = (1, 2)
    patterns: tuple[str, ...] = ("topic", "service", "action")
    measured_energy: bool = False
    loss_share: float = 0.0
    unknown_runs: tuple[int, ...] = ()
    drop_runs: tuple[int, ...] = ()
    skip: dict[str, Any] | None = None
    died_runs: tuple[int, ...] = ()
    b_over_a: float | None = None
    """If set, every block has control runs in which B uses this multiple of A's CPU time."""
    study: dict[str, Any] = field(default_factory=dict)


def study_document(shape: Shape) -> dict[str, Any]:
    """Return the effective study in the format of the store."""
    document: dict[str, Any] = {
        "name": "made-up",
        "title": "What a message costs, made up <for tests>",
        "goal": {
            "object": "two languages",
            "purpose": "compare",
            "focus": "cost per message",
            "viewpoint": "a developer",
            "context": "one machine",
        },
        "source": "10.0000/none",
        "question": [
            {
                "id": "Q1",
                "text": "Does the language change the CPU time of a message?",
                "factors": ["language"],
                "responses": ["cpu_us_per_message", "memory_kib"],
            },
            {
                "id": "Q2",
                "text": "Which factors move latency & energy?",
                "factors": ["language", "interval_s", "clients"],
                "responses": ["latency_p50_us", "energy_message_j"],
            },
        ],
        "factors": {
            "language": [FAST, SLOW],
            "pattern": list(shape.patterns),
            "interval_s": list(shape.intervals_s),
            "clients": list(shape.clients),
        },
        "fixed": {"middleware": "loopback", "payload_bytes": 64},
        "plan": {
            "blocks": shape.blocks,
            "seed": 7,
            "primary": "language",
            "duration_s": shape.duration_s,
            "retries": 1,
            "linger_ms": 1000,
        },
        "validity": {"other_load_max": 0.25, "steal_max": 0.05},
        "answers": {
            "baseline": {"language": SLOW, "interval_s": 0.05, "clients": 1},
            "family": "all answers of Q1 and Q2",
            "margin": 0.05,
        },
        "titles": {"language": {FAST: "Swift", SLOW: "Python"}},
    }
    document.update(shape.study)
    return document


MACHINE: dict[str, Any] = {
    "hosts": {
        "local": {
            "facts": [
                {"key": "cpu_name", "value": "Made-up CPU <4>", "unit": "", "check": "equal"},
                {"key": "cpus", "value": 4, "unit": "count", "check": "equal"},
                {"key": "memory_bytes", "value": 8 << 30, "unit": "bytes", "check": "equal"},
                {"key": "kernel", "value": "6.1.0", "unit": "", "check": "equal"},
            ],
            "meters": [
                {
                    "name": "fake",
                    "state": "present",
                    "reason": "",
                    "grant": "",
                    "quantities": ["cpu_time"],
                    "info": {},
                },
                {
                    "name": "wall_meter",
                    "state": "absent",
                    "reason": "no device at /dev/wall0",
                    "grant": "plug one in",
                    "quantities": [{"name": "power_input", "unit": "uw", "rank": 10}],
                    "info": {},
                },
                {
                    "name": "rail_meter",
                    "state": "absent",
                    "reason": "no address",
                    "grant": "",
                    "quantities": [{"name": "power_part", "unit": "uw", "rank": None}],
                    "info": {},
                },
            ],
            "cgroup": {"rung": "none", "lost": ["no per-tree CPU"]},
            "rights": {"root": False},
        }
    },
    "versions": {"wattwire": "0.1.0", "agent": "0.1.0"},
}


def write_campaign(folder: Path, shape: Shape | None = None, seed: int = 1) -> Path:
    """Write a campaign to `folder` and return its path.

    Simulating the runs takes half a second, so campaigns that differ only in their study share it.
    """
    shape = shape or Shape()
    key = repr((replace(shape, study={}), seed))
    if key in _WRITTEN:
        assert not (folder / "journal.sqlite").exists(), f"{folder} has a campaign"
        for path, content in _WRITTEN[key].items():
            if content is None:
                (folder / path).mkdir(parents=True, exist_ok=True)
            else:
                (folder / path).write_bytes(content)
    else:
        _simulate(folder, shape, seed)
        _WRITTEN[key] = {
            path.relative_to(folder): None if path.is_dir() else path.read_bytes()
            for path in (folder, *sorted(folder.rglob("*")))
        }
        if len(_WRITTEN) > WRITTEN_MAX:
            del _WRITTEN[next(iter(_WRITTEN))]
    # Not frozen, because tests edit this document, and a reader would report the edits.
    (folder / "study.json").write_text(json.dumps(study_document(shape)))
    return folder


_WRITTEN: dict[str, dict[Path, bytes | None]] = {}
"""Files and folders (None) of the latest campaigns by their shape without the study, and seed."""
WRITTEN_MAX = 16


def _simulate(folder: Path, shape: Shape, seed: int) -> None:
    rng = np.random.default_rng(seed)
    campaign = Campaign.create(folder)
    campaign.write_json("machine.json", MACHINE)
    plan: list[dict[str, Any]] = []
    index = 0
    for block in range(1, shape.blocks + 1):
        cells = list(product([FAST, SLOW], shape.patterns, shape.intervals_s, shape.clients))
        order = rng.permutation(len(cells))
        for position, at in enumerate(order, start=1):
            language, pattern, interval_s, clients = cells[at]
            treatment = {
                "language": language,
                "pattern": pattern,
                "interval_s": interval_s,
                "clients": clients,
            }
            run = f"b{block:02d}-p{position:03d}"
            skipped = None
            if shape.skip and all(treatment[k] == v for k, v in shape.skip.items()):
                skipped = "the cell has no such capability"
            row = {
                "run": None if skipped else run,
                "block": None if skipped else block,
                "position": None if skipped else position,
                "treatment": treatment,
                "levels": {**treatment, "payload_bytes": 64},
                "cells": {role: f"loopback/{language}" for role in ROLES[pattern]},
                "skipped": skipped,
            }
            if row not in plan:
                plan.append(row)
            if skipped is None and index not in shape.drop_runs:
                died = index in shape.died_runs
                _write_run(campaign, row, shape, rng, index in shape.unknown_runs, died)
            index += 1
        if shape.b_over_a is not None:
            first = next(row for row in plan if row["run"])
            for position, control in enumerate(("a", "b", "unsampled"), start=len(cells) + 1):
                run = f"b{block:02d}-p{position:03d}"
                row = {**first, "run": run, "block": block, "position": position}
                plan.append({**row, "control": control})
                _write_run(campaign, plan[-1], shape, rng, unknown=False)
    campaign.write_json("plan.json", plan)
    planned = [row for row in plan if row["run"]]
    campaign.journal.write_plan((r["run"], r["block"], r["position"], "") for r in planned)
    campaign.close()


def _write_run(
    campaign: Campaign,
    entry: dict[str, Any],
    shape: Shape,
    rng: np.random.Generator,
    unknown: bool,
    died: bool = False,
) -> None:
    number = campaign.journal.begin(entry["run"], "made-up", WRITTEN_AT)
    at = campaign.open_attempt(entry["run"], number)
    treatment = entry["treatment"]
    nodes = _nodes(treatment)
    messages, counts = _messages(entry["run"], treatment, nodes, shape, rng)
    write_table(messages, at / "messages.parquet")
    summary = _summary(entry, nodes, messages, counts, shape, rng, unknown)
    summary["control"] = entry.get("control", "")
    if summary["control"] == "b":
        summary["cpu_us_per_message"] *= shape.b_over_a
    if died:  # a dead node is an outcome, so the run is valid; it has no costs
        summary |= {"outcome": "died", "cpu_us_per_message": None}
    (at / "summary.json").write_text(json.dumps(summary))
    start = SECOND * 1000
    made = len(campaign.journal.attempts()) - 1
    began = EPOCH_NS + int(made * (RUN_S + WAITED_S) * SECOND)
    document = {
        "run": entry["run"],
        "attempt": 1,
        "block": entry["block"],
        "position": entry["position"],
        "predecessor": None,
        "treatment": treatment,
        "levels": entry["levels"],
        "cells": entry["cells"],
        "nodes": nodes,
        "services": [],
        "window": {"start_ns": start, "end_ns": start + int(shape.duration_s * SECOND)},
        "baselines": {
            "machine": {"begin_ns": 0, "end_ns": SECOND},
            "silent": {"begin_ns": SECOND, "end_ns": 2 * SECOND},
        },
        "outcome": "completed",
        "verdict": "invalid" if unknown else "valid",
        "reasons": [
            {
                "code": "other_load",
                "detail": "another process took 40 % <of> a core",
            }
        ]
        if unknown
        else [],
        "conditions_before": {"other_load_share": 0.41 if unknown else 0.01, "waited_s": WAITED_S},
        "clocks": {
            "begin": [{"realtime_ns": began}],
            "end": [{"realtime_ns": began + int(RUN_S * SECOND)}],
        },
        "seconds": {"start": 0.4, "window": shape.duration_s, "drain": 0.3},
        "commands": [],
    }
    if died:
        document |= {"outcome": "died", "outcome_detail": "client-0: killed by signal 9"}
    (at / "run.json").write_text(json.dumps(document))
    (at / "deployment.json").write_text(json.dumps(deployment_of_nodes(nodes).to_json()))
    folder = campaign.commit(entry["run"], number, at)
    verdict, outcome = str(document["verdict"]), str(document["outcome"])
    campaign.journal.finish(entry["run"], number, verdict, outcome, folder, WRITTEN_AT)


def _nodes(treatment: dict[str, Any]) -> list[dict[str, Any]]:
    server, client = ROLES[treatment["pattern"]]
    nodes = []
    members = [(server, 0)] + [(client, i) for i in range(treatment["clients"])]
    for number, (role, index) in enumerate(members):
        nodes.append(
            {
                "node": number,
                "role": role,
                "index": index,
                "cell": f"loopback/{treatment['language']}",
                "process": f"{role}-{index}",
                "language": treatment["language"],
                "ready": {
                    "matched": 1,
                    "startup_ns": 120_000_000,
                    "discovery_ns": 30_000_000,
                    "library": {"name": "made-up", "version": "1.2.3", "build": "release"},
                    "effective": {"transport": "tcp", "nodelay": True},
                    "guarantee": {
                        "delivery": "reliable",
                        "ordering": "per_sender",
                        "overload": "block",
                    },
                },
                "sent": None,
                "done": {
                    "sent": 1,
                    "received": 1,
                    "recorded": 1,
                    "overflow": 0,
                    "foreign": 0,
                    "corrupt": 0,
                    "probes": 0,
                },
                "exit": {"code": 0, "signal": None, "rusage": {}},
            }
        )
    return nodes


def _messages(
    run: str,
    treatment: dict[str, Any],
    nodes: list[dict[str, Any]],
    shape: Shape,
    rng: np.random.Generator,
) -> tuple[pl.DataFrame, dict[str, int]]:
    count = int(shape.duration_s / treatment["interval_s"])
    scale_us = 400.0 * (LATENCY_RATIO if treatment["language"] == FAST else 1.0)
    kind = {"topic": "message", "service": "call", "action": "result"}[treatment["pattern"]]
    frames, sent, expected, received = [], 0, 0, 0
    calls = treatment["pattern"] != "topic"
    for node in nodes[1:]:
        begin = 1000 * SECOND + (np.arange(count) * treatment["interval_s"] * SECOND).astype(int)
        delay = (scale_us * 1000 * np.exp(rng.normal(0, 0.25, count))).astype(int)
        lost = rng.random(count) < shape.loss_share
        keep = np.ones(count, bool) if calls else ~lost
        frames.append(
            pl.DataFrame(
                {
                    "node": np.full(count, node["node"]),
                    "counter": np.arange(count),
                    "sender": np.full(count, node["node"] if calls else 0),
                    "intended_ns": begin,
                    "begin_ns": begin + 2000,
                    "end_ns": begin + 2000 + delay,
                    "flags": np.where(lost, 4, 0) if calls else np.zeros(count, int),
                    "keep": keep,
                    "lost": lost,
                }
            )
            .with_columns(end_ns=pl.when(pl.col("lost")).then(None).otherwise(pl.col("end_ns")))
            .filter(pl.col("keep"))
            .drop("keep", "lost")
        )
        sent += count if calls else 0
        expected += count
        received += int(count - lost.sum())
    sent = sent or count
    frame = pl.concat(frames).with_columns(
        run=pl.lit(run),
        flow=pl.lit("main"),
        host=pl.lit("local"),
        kind=pl.lit(kind),
        peer=pl.lit(0),
        hop=pl.lit(0),
        bytes=pl.lit(64),
    )
    counts = {"sent": sent, "expected": expected, "received": received}
    return frame, counts


def _summary(
    entry: dict[str, Any],
    nodes: list[dict[str, Any]],
    messages: pl.DataFrame,
    counts: dict[str, int],
    shape: Shape,
    rng: np.random.Generator,
    unknown: bool,
) -> dict[str, Any]:
    treatment = entry["treatment"]
    fast = treatment["language"] == FAST
    drift = 1.0 + 0.1 * entry["block"]
    cpu_us = 250.0 * (CPU_RATIO if fast else 1.0) * drift * float(np.exp(rng.normal(0, 0.05)))
    cpu_us *= 5.0 if unknown else 1.0
    window_s = shape.duration_s
    share = cpu_us * 1e-6 * counts["sent"] / window_s / len(nodes)
    latency = ((messages["end_ns"] - messages["begin_ns"]) / 1000).drop_nulls().to_numpy()
    row: dict[str, Any] = {
        "run": entry["run"],
        "attempt": 1,
        "block": entry["block"],
        "position": entry["position"],
        "verdict": "invalid" if unknown else "valid",
        "outcome": "completed",
        **{f"factor.{k}": v for k, v in treatment.items()},
        "sent": counts["sent"],
        "expected": counts["expected"],
        "received_unique": counts["received"],
        "lost": counts["expected"] - counts["received"],
        "late": 0,
        "duplicates": 0,
        "corrupt": 0,
        "foreign": 0,
        "window_s": window_s,
        "cost_window_s": window_s,
        "rate_hz_achieved": counts["sent"] / window_s,
        "latency_p50_us": float(np.quantile(latency, 0.5)),
        "latency_p90_us": float(np.quantile(latency, 0.9)),
        "latency_p99_us": float(np.quantile(latency, 0.99)),
        "latency_mean_us": float(np.mean(latency)),
        **{
            f"since_send_{name}_us": float(np.quantile(latency, share))
            for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))
        },
        "schedule_late_p99_us": 80.0,
        "startup_s_max": 0.12,
        "discovery_s_max": 0.03,
        "cpu_us_per_message": cpu_us,
        "harness_cpu_share": 0.004,
        "steal_share": 0.001,
        "other_load_share": 0.41 if unknown else 0.01,
        "power_machine_w": 3.0 if shape.measured_energy else None,
        "power_silent_w": 3.2 if shape.measured_energy else None,
        "power_window_w": 3.6 + float(rng.normal(0, 0.02)) if shape.measured_energy else None,
    }
    energy = {"standing": 0.2, "message": 0.4 * float(np.exp(rng.normal(0, 0.1))), "total": 0.6}
    for name, power in energy.items():
        row[f"energy_{name}_j"] = power * window_s if shape.measured_energy else None
    for node in nodes:
        tail = f"{node['role']}.{node['index']}"
        row[f"cpu_share.{tail}"] = share
        row[f"memory_kib.{tail}"] = MEMORY_KIB[treatment["language"]]
        row[f"energy_estimate_low_j.{tail}"] = share * window_s * 3.0
        row[f"energy_estimate_high_j.{tail}"] = share * window_s * 12.0
    return row


def unpacked(packed: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of `packed` data, decoded as in page.js."""
    columns = {
        name: held
        if isinstance(held, list)
        else [None if at is None else held["words"][at] for at in held["at"]]
        for name, held in packed["columns"].items()
    }
    return [{name: columns[name][row] for name in columns} for row in range(packed["rows"])]


def add_attempt(
    folder: Path, source: str, run: str, row: Mapping[str, Any], document: Mapping[str, Any]
) -> None:
    """Add an attempt of `run` to the campaign. The attempt is a copy of runs/SOURCE with changes.

    `row` changes its summary, and `document` its run.json. An unplanned run is also added to the
    plan.
    """
    campaign = Campaign(folder)
    like = folder / "runs" / source
    summary = {**json.loads((like / "summary.json").read_text()), "run": run, **row}
    if run not in campaign.journal.runs():
        campaign.journal.write_plan([(run, summary["block"], summary["position"], "")])
    number = campaign.journal.begin(run, "made-up", WRITTEN_AT)
    at = campaign.open_attempt(run, number)
    for name in ("messages.parquet", "deployment.json"):
        shutil.copy(like / name, at)
    summary["attempt"] = number
    (at / "summary.json").write_text(json.dumps(summary))
    copied = json.loads((like / "run.json").read_text())
    (at / "run.json").write_text(json.dumps({**copied, "run": run, "attempt": number, **document}))
    name = campaign.commit(run, number, at)
    verdict, outcome = str(summary["verdict"]), str(summary["outcome"])
    campaign.journal.finish(run, number, verdict, outcome, name, WRITTEN_AT)
    campaign.close()


def row_of(path: Path) -> pl.DataFrame:
    """Return the summary.json of an attempt as a frame with one row."""
    return pl.DataFrame([json.loads(path.read_text())])


def put_row(frame: pl.DataFrame, path: Path) -> None:
    """Write a frame with one row as the summary.json of an attempt."""
    (row,) = frame.to_dicts()
    path.write_text(json.dumps(row))


def saturate(campaign: Path, runs: int, language: str = SLOW) -> None:
    """Mark the first `runs` runs of a language as saturated."""
    left = runs
    for path in sorted(campaign.glob("runs/*/summary.json")):
        row = row_of(path)
        if left and row["factor.language"].item() == language:
            left -= 1
            put_row(row.with_columns(outcome=pl.lit("saturated")), path)
    assert not left
