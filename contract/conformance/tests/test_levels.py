"""Test the specs that the suite derives from levels of settings with restrictions."""

from __future__ import annotations

from contract.conformance.cell import CellUnderTest
from contract.conformance.usage import _undeclared

ONLY = {
    "fixed": {
        "pattern": ["topic", "pipeline"],
        "payload.encoding": ["bytes"],
        "payload.bytes": [1024, 4096],
        "payload.literal": [""],
    }
}


def cases(**changes):
    cell = CellUnderTest(
        "mmm/lang", (), patterns=["topic", "service"], settings={"array": "sequence"},
        capabilities=["encoding.bytes", "encoding.text", "literal", "pacing.kit", "loop.open"],
        only={"array": ONLY}, **changes,
    )  # fmt: skip
    return {name: spec for name, spec in _undeclared(cell) if "with settings.array = fixed" in name}


def test_each_restricted_key_has_a_spec_with_one_unsupported_value():
    found = cases()
    keys = ("pattern", "payload.encoding", "payload.bytes", "payload.literal")
    unsupported = {
        name: [key for key in keys if spec[key] not in ONLY["fixed"][key]]
        for name, spec in found.items()
    }
    assert sorted(map(tuple, unsupported.values())) == sorted((key,) for key in keys)
    assert all(spec["settings.array"] == "fixed" for spec in found.values())
    assert next(s for n, s in found.items() if "payload.bytes" in n)["payload.bytes"] == 1025
