"""Test that no name in a measured campaign changes its numbers or its page.

The names of a setting, its levels, a treatment's language, a service and a host come from the words
that have a meaning in the code (`test_colliding_names.py` tests those of imported tables).
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.conftest import Cases
from tests.fuzz.test_colliding_names import words
from tests.fuzz.verbs import say
from wattwire.analysis.dataset import gather
from wattwire.analysis.document import document
from wattwire.report.tests.synthetic import FAST, Shape, write_campaign
from wattwire.store import Campaign

FOLDER_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
SHAPE = Shape(blocks=3, duration_s=1.0, patterns=("topic",), intervals_s=(0.05,))
FACTOR, SERVICE, HOST = "clients", "broker", "local"
"""Names in the campaign before they are replaced. FACTOR becomes a setting."""
LEVELS = (1, 2)


def renamed(value: Any, names: Mapping[str, str], levels: Mapping[Any, str]) -> Any:
    """Return a document with its keys and texts replaced by `names`, and FACTOR's `levels`."""
    if isinstance(value, dict):
        return {
            names.get(key, key): _levels(content, levels)
            if key in (FACTOR, f"factor.{FACTOR}")
            else renamed(content, names, levels)
            for key, content in value.items()
        }
    if isinstance(value, list):
        return [renamed(item, names, levels) for item in value]
    return names.get(value, value) if isinstance(value, str) else value


def _levels(value: Any, levels: Mapping[Any, str]) -> Any:
    values = value if isinstance(value, list) else [value]
    replaced = [levels.get(item, item) for item in values]
    return replaced if isinstance(value, list) else replaced[0]


def write(folder: Path, names: Mapping[str, str], levels: Mapping[Any, str]) -> Path:
    """Write the campaign with a service and these names, and return its folder."""
    write_campaign(folder, SHAPE)
    for path in folder.rglob("*.json"):
        content = json.loads(path.read_text("utf-8"))
        if path.name == "summary.json":
            content |= {f"memory_kib.{SERVICE}": 9000.0, f"cpu_share.{SERVICE}": 0.5}
        if path.name == "run.json":
            for node in content["nodes"]:
                node["host"] = HOST
        path.write_text(json.dumps(renamed(content, names, levels)), "utf-8")
    return folder


def drawn(seed: int) -> tuple[dict[str, str], dict[Any, str]]:
    """Return new names of factor, language, service and host, and new levels of the factor."""
    draw = random.Random(seed)
    folder_names = [word for word in words() if FOLDER_NAME.fullmatch(word)]
    setting, language, service, host = draw.sample(folder_names, 4)
    names = {
        FACTOR: f"settings.{setting}", f"factor.{FACTOR}": f"factor.settings.{setting}",
        FAST: language, f"loopback/{FAST}": f"loopback/{language}", HOST: host, SERVICE: service,
        **{f"{prefix}.{SERVICE}": f"{prefix}.{service}" for prefix in ("memory_kib", "cpu_share")},
    }  # fmt: skip
    return names, dict(zip(LEVELS, draw.sample(words(), len(LEVELS)), strict=True))


def estimates(folder: Path) -> list[tuple[str, float | None]]:
    """Return the response and the estimate of each answer, in the order of the questions."""
    evidence = gather(Campaign(folder))
    entries = document(evidence).values["contrasts"]
    return [(entry["response"], entry.get("estimate")) for entry in entries]


def test_no_name_of_a_measured_campaign_changes_its_numbers(cases: Cases, tmp_path: Path) -> None:
    expected = estimates(write(tmp_path / "plain", {}, {}))
    assert sum(estimate is not None for _, estimate in expected) >= 3
    for seed in cases(4, 200):
        names, levels = drawn(seed)
        found = estimates(write(tmp_path / f"p{seed}", names, levels))
        assert [response for response, _ in found] == [response for response, _ in expected]
        for (response, estimate), (_, value) in zip(found, expected, strict=True):
            assert estimate == (value if value is None else pytest.approx(value, rel=1e-9)), (
                seed, response, names, levels,
            )  # fmt: skip


def test_a_page_draws_every_name_of_a_measured_campaign(cases: Cases, tmp_path: Path) -> None:
    for seed in cases(1, 50):
        names, levels = drawn(1000 + seed)
        folder = write(tmp_path / f"p{seed}", names, levels)
        said = say("report", str(folder))
        assert said.code == 0, (names, levels, said.err)
        page = (folder / "report" / "index.html").read_text("utf-8")
        assert "could not be drawn" not in page, (names, levels)
