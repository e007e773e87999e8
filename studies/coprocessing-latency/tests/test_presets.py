"""Test that each preset plans every protocol, and that published rows belong to its sizes."""

from __future__ import annotations

import base64
import csv
from pathlib import Path

import pytest

from wattwire.catalog import Catalog
from wattwire.catalog.manifest import read_toml
from wattwire.design import expand
from wattwire.model.study import Study, apply_preset, parse_study

FOLDER = Path(__file__).resolve().parents[1]
PRESETS = (None, "paper", "quick", "smoke")
BOARDS = {"E-an385", "E-an386", "E-an500", "E-an505", "E-riscv"}
LIBRARIES = {"C1-roslibpy", "C1-roslib"}
"""Clients whose cells would lengthen the preset smoke, because a library must be installed."""
FRAME_BYTES, BLOCK_BYTES = 40, 16
DATAGRAM_BYTES_MAX = 65507


def study_of(preset: str | None) -> Study:
    document = apply_preset(read_toml(FOLDER / "study.toml"), preset, "study.toml")
    return parse_study(FOLDER.name, document, "study.toml")


@pytest.mark.parametrize("preset", PRESETS)
def test_every_protocol_is_planned_and_excluded_only_above_a_datagram(preset):
    study = study_of(preset)
    pairs = expand(study)
    omitted = LIBRARIES if preset == "smoke" else set()
    planned = {t["variant"] for t, reason in pairs if not reason}
    assert planned == set(study.factors["variant"]) - omitted
    for treatment, reason in pairs:
        payload, variant = bytes(treatment["payload_bytes"]), treatment["variant"]
        sent = base64.b64encode(payload) if variant in ("C2", "C3") else payload
        over_udp = variant in ("C2", "C3", "D-udp-cpp", "D-udp-python")
        assert bool(reason) == (over_udp and len(sent) > DATAGRAM_BYTES_MAX)


@pytest.mark.parametrize("preset", PRESETS)
def test_only_whole_blocks_are_encrypted_and_echoed_at_the_same_sizes(preset):
    treatments = [treatment for treatment, _ in expand(study_of(preset))]
    encrypted = {(t["variant"], t["payload_bytes"]) for t in treatments if t["reply"] == "encrypt"}
    echoed = {(t["variant"], t["payload_bytes"]) for t in treatments if t["reply"] == "echo"}
    assert all((size - FRAME_BYTES) % BLOCK_BYTES == 0 for _, size in encrypted)
    assert {pair for pair in encrypted if pair[0] not in BOARDS} <= echoed
    assert {variant for variant, _ in encrypted - echoed} == BOARDS


@pytest.mark.parametrize("preset", PRESETS)
def test_each_device_of_a_board_is_declared_as_emulated(preset):
    catalog, study = Catalog(), study_of(preset)
    cells = {
        name: catalog.cell(str(variant.levels["cell"]))
        for name, variant in study.variants.items()
        if name.startswith("E-")
    }
    assert {name for name, cell in cells.items() if cell.emulated} == BOARDS


def test_the_preset_paper_has_every_published_size_and_variant():
    study = study_of("paper")
    with (FOLDER / "published.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    latencies = [row for row in rows if row["latency_us"]]
    assert {row["table"] for row in latencies} == {"3", "4", "6"}
    assert {int(row["payload_bytes"]) for row in latencies} <= set(study.factors["payload_bytes"])
    assert {row["variant"] for row in latencies} <= set(study.factors["variant"])
    assert [sum(row["table"] == name for row in rows) for name in ("I", "II")] == [6, 8]
    # Table II: the throughput is one block of 16 bytes over the printed time.
    for row in rows:
        if row["table"] == "II":
            computed = BLOCK_BYTES / float(row["execution_time_ms"]) / 1e3
            assert float(row["throughput_mb_per_s"]) == pytest.approx(computed, rel=0.02)


@pytest.mark.parametrize("preset", PRESETS)
def test_each_paced_treatment_has_its_counterpart_with_one_message_in_flight(preset):
    treatments = [treatment for treatment, reason in expand(study_of(preset)) if not reason]
    sides = {
        loop: {(t["variant"], t["payload_bytes"]) for t in treatments if t["loop"] == loop}
        for loop in ("open", "closed")
    }
    assert sides["open"] and sides["open"] <= sides["closed"]
    assert {"A-cpp", "C1", "D-udp-cpp", "D-tcp-cpp"} <= {variant for variant, _ in sides["open"]}


def test_the_preset_paper_has_the_treatments_of_every_claim():
    study = study_of("paper")
    treatments = [treatment for treatment, _ in expand(study)]
    compared = [claim for claim in study.claims if not claim.unanswerable]
    assert len(compared) == 7
    for claim in compared:
        for side in (claim.left, claim.right):
            levels = {**side, **claim.where}
            assert any(
                all(treatment[factor] in allowed for factor, allowed in levels.items())
                for treatment in treatments
            ), claim.text
