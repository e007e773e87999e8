"""Test the specs whose declaration lacks what they request (C-02, C-03)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from contract.conformance.cell import CellUnderTest
from contract.conformance.spec import DECLARED, bad_specs, base_spec
from contract.conformance.usage import _undeclared, _withheld

CELL = CellUnderTest(
    "mmm/lang", (), patterns=["service"],
    capabilities=[
        "encoding.bytes", "encoding.text", "pacing.kit", "loop.open", "loop.closed", "reply.echo",
        "literal", "async_client", "network",
    ],
    settings={"depth": 10, "mode": "a", "fast": False},
)  # fmt: skip
GOOD = base_spec(CELL, "service", "client")


def changed(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the declaration of a spec, as far as it is not that of the cell."""
    return {k: v for k, v in spec.items() if k.startswith(DECLARED) and v != GOOD.get(k)}


def test_each_capability_that_a_spec_requires_is_withheld_once() -> None:
    withheld = {name: changed(spec) for name, spec in _withheld(CELL) if "." in name}
    withheld = {name: keys for name, keys in withheld.items() if not name.startswith("payload")}
    assert sorted(withheld) == [
        "encoding.bytes", "encoding.text", "loop.open", "pacing.kit", "reply.echo",
    ]  # fmt: skip
    for name, spec in _withheld(CELL):
        if f"{DECLARED}capabilities" in changed(spec):
            assert name not in spec[f"{DECLARED}capabilities"]
            assert len(spec[f"{DECLARED}capabilities"]) == len(CELL.capabilities) - 1


def test_a_role_a_size_and_a_value_are_withheld() -> None:
    withheld = {name: spec for name, spec in _withheld(CELL)}
    assert withheld["role client"][f"{DECLARED}roles"] == ["server"]
    too_long = changed(withheld["payload.bytes above 63"])
    assert set(too_long.values()) == {63} and len(too_long) == 2
    too_short = changed(withheld["payload.bytes below 65"])
    assert too_short == {f"{DECLARED}payload_bytes_min": 65}
    assert changed(withheld["depth = 10"]) == {f"{DECLARED}allowed.depth": [11]}
    assert {"literal", "async_client"} <= set(withheld)


def test_no_spec_is_both_withheld_and_beyond_the_cell() -> None:
    names = {name for name, _ in _withheld(CELL)}
    assert not names & {name for name, _ in _undeclared(CELL)}


def test_a_setting_that_is_not_declared_has_no_supported_values() -> None:
    limited = replace(CELL, allowed={"depth": [10]})
    specs = {change: spec for change, _, spec in bad_specs(base_spec(limited, "service", "client"))}
    undeclared = specs["undeclared"]
    assert undeclared["settings.depth"] == 10
    assert "depth" not in undeclared[f"{DECLARED}integer_settings"]
    assert f"{DECLARED}allowed.depth" not in undeclared


def test_a_setting_is_missing_mistyped_unknown_and_not_declared() -> None:
    changes = {(change, key) for change, key, _ in bad_specs(GOOD) if key.startswith("settings.")}
    names = [f"settings.{name}" for name in CELL.settings]
    assert changes == {
        *(("missing", name) for name in names), *(("wrongly typed", name) for name in names),
        ("unknown", "settings.colour"), ("undeclared", "settings.depth"),
    }  # fmt: skip
