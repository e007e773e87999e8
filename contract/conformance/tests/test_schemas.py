"""Test the schemas against the golden vectors and the suite's specs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contract.conformance.repository import ROOT, proving_cell
from contract.conformance.roles import PATTERNS
from contract.conformance.schema import NAMES, breaches, validator
from contract.conformance.spec import bad_specs, base_spec

VECTORS = ROOT / "contract" / "vectors"
# The schema does not contain the settings of the middleware.
BEYOND_THE_SCHEMA = "settings."


def vectors(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_every_schema_is_a_schema(name: str) -> None:
    assert validator(name).schema["title"]


@pytest.mark.parametrize("entry", vectors("spec")["valid"], ids=lambda entry: entry["name"])
def test_a_golden_spec_is_valid_by_the_schema(entry: dict[str, Any]) -> None:
    assert list(breaches("spec", entry["spec"])) == []


@pytest.mark.parametrize("entry", vectors("member")["valid"], ids=lambda entry: entry["name"])
def test_a_golden_spec_of_a_member_is_valid_by_the_schema_and_so_are_its_parts(
    entry: dict[str, Any],
) -> None:
    for spec in (entry["spec"], *entry["parts"]):
        assert list(breaches("spec", spec)) == []
    assert list(breaches("spec", {**entry["spec"], "pacing": "native"}))
    assert list(breaches("spec", {**entry["spec"], "pattern": "pipeline", "hop": 0}))


@pytest.mark.parametrize("entry", vectors("spec")["invalid"], ids=lambda entry: entry["name"])
def test_a_golden_invalid_spec_is_invalid_by_the_schema(entry: dict[str, Any]) -> None:
    if not entry["name"].startswith(BEYOND_THE_SCHEMA):
        assert list(breaches("spec", entry["spec"]))


@pytest.mark.parametrize("entry", vectors("spec")["unsound"], ids=lambda entry: entry["name"])
def test_an_inconsistent_spec_is_invalid_by_the_schema(entry: dict[str, Any]) -> None:
    valid_spec = {valid["name"]: valid["spec"] for valid in vectors("spec")["valid"]}[entry["of"]]
    assert list(breaches("spec", {**valid_spec, **entry["changes"]}))


def test_the_lines_have_the_fields_of_the_golden_dialogue() -> None:
    for keyword, fields in vectors("dialogue")["fields"].items():
        schema = validator(keyword.lower()).schema
        # Only the lines of members have parts (C-42).
        assert sorted({*schema["properties"]} - {"parts"}) == sorted(fields), keyword


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_suites_own_specs_are_valid_by_the_schema(pattern: str, tmp_path: Path) -> None:
    cell = proving_cell("python", tmp_path)
    for role in PATTERNS[pattern].roles:
        assert list(breaches("spec", base_spec(cell, pattern, role))) == []


def test_every_invalid_spec_of_the_suite_is_invalid_by_the_schema(tmp_path: Path) -> None:
    """Settings are excluded, because the schema applies to all middleware."""
    cell = proving_cell("python", tmp_path)
    for change, key, spec in bad_specs(base_spec(cell, "topic", "publisher")):
        if not key.startswith("settings."):
            assert list(breaches("spec", spec)), f"{key}: {change}"


def ready(**changes: Any) -> dict[str, Any]:
    return {
        "matched": 1, "startup_ns": 5, "discovery_ns": None,
        "library": {"name": "a", "version": "1", "build": ""}, "effective": {"nodelay": True},
        "guarantee": {"delivery": "reliable", "ordering": "none", "overload": "block"}, **changes,
    }  # fmt: skip


def test_matched_in_ready_may_be_null() -> None:
    assert list(breaches("ready", ready(matched=None))) == []


def test_ready_rejects_an_unknown_guarantee() -> None:
    guarantee = {"delivery": "surely", "ordering": "none", "overload": "block"}
    assert any("surely" in text for text in breaches("ready", ready(guarantee=guarantee)))


def test_an_error_with_code_2_names_its_key() -> None:
    assert list(breaches("error", {"code": 2, "key": None, "reason": "bad"}))
    assert list(breaches("error", {"code": 4, "key": None, "reason": "no broker"})) == []


def test_the_exit_event_requires_every_field_of_rusage() -> None:
    usage = dict.fromkeys(
        ("user_ns", "system_ns", "maxrss_bytes", "minflt", "majflt", "nvcsw", "nivcsw"), 0
    )
    event = {
        "event": "exit", "process": "ping-0", "t_ns": 1, "code": 0, "signal": None,
        "killed_by_guard": False, "rusage": usage,
    }  # fmt: skip
    assert list(breaches("agent-exit", event)) == []
    assert list(breaches("agent-exit", {**event, "rusage": {}}))
