"""Test which payloads and patterns an encoding or a reply does not permit, and the reasons."""

from __future__ import annotations

import pytest

from wattwire.model.deployment import PATTERNS
from wattwire.model.treatment import Treatment
from wattwire.run.encodings import encoding_gap, reply_gap


def gap(pattern="topic", **levels):
    levels = {"payload_encoding": "pointcloud", "payload_bytes": 64, "literal": "", **levels}
    return encoding_gap(Treatment.of({}, levels), PATTERNS[pattern])


@pytest.mark.parametrize("payload_bytes", [16, 32, 65_536, 524_288])
@pytest.mark.parametrize("pattern", ["topic", "pipeline"])
def test_a_whole_number_of_points_is_carried(pattern, payload_bytes):
    assert gap(pattern, payload_bytes=payload_bytes) is None


@pytest.mark.parametrize(
    ("payload_bytes", "nearest"), [(0, "16"), (8, "16"), (24, "16 or 32"), (1000, "992 or 1008")]
)
def test_a_part_of_a_point_is_refused_with_the_nearest_payloads(payload_bytes, nearest):
    assert gap(payload_bytes=payload_bytes) == (
        f"payload_bytes = {payload_bytes} with payload_encoding = pointcloud is no whole number of "
        f"points; allowed: multiples of 16, from 16 (C-39). Use {nearest}"
    )


@pytest.mark.parametrize("pattern", ["service", "action", "pingpong"])
def test_a_pattern_with_replies_has_no_point_clouds(pattern):
    reason = gap(pattern)
    assert reason is not None and f"pattern = {pattern}" in reason
    assert "allowed: topic, pipeline" in reason


def test_a_literal_is_no_point_cloud():
    reason = gap(literal="Hello")
    assert reason is not None and "literal = 'Hello'" in reason and "an empty literal" in reason


def test_the_rules_of_point_clouds_hold_for_no_other_encoding():
    assert gap("service", payload_encoding="bytes", payload_bytes=24) is None


def test_a_record_has_its_least_size():
    assert gap("service", payload_encoding="record", payload_bytes=96) is None
    assert "at least 96 bytes" in (gap(payload_encoding="record", payload_bytes=95) or "")
    assert "no literal" in (gap(payload_encoding="record", payload_bytes=96, literal="x") or "")


def encrypting_gap(pattern="service", **levels):
    levels = {
        "reply": "encrypt", "payload_encoding": "bytes", "payload_bytes": 56, "literal": "",
        **levels,
    }  # fmt: skip
    return reply_gap(Treatment.of({}, levels), PATTERNS[pattern])


@pytest.mark.parametrize("payload_bytes", [40, 56, 200, 1_048_616])
def test_a_whole_number_of_blocks_is_encrypted(payload_bytes):
    assert encrypting_gap(payload_bytes=payload_bytes) is None


@pytest.mark.parametrize(
    ("payload_bytes", "nearest"),
    [(0, "40"), (39, "40"), (41, "40 or 56"), (48, "40 or 56"), (1024, "1016 or 1032")],
)
def test_a_part_of_a_block_is_refused_with_the_nearest_payloads(payload_bytes, nearest):
    assert encrypting_gap(payload_bytes=payload_bytes) == (
        f"payload_bytes = {payload_bytes} with reply = encrypt is no whole number of blocks; "
        f"allowed: 40 + 16 k bytes, for k blocks (C-40). Use {nearest}"
    )


@pytest.mark.parametrize("pattern", ["topic", "pingpong", "action", "pipeline"])
def test_only_a_service_encrypts(pattern):
    reason = encrypting_gap(pattern)
    assert reason is not None and f"pattern = {pattern}" in reason and "allowed: service" in reason


@pytest.mark.parametrize("levels", [{"payload_encoding": "text"}, {"literal": "Hello"}])
def test_only_bytes_are_encrypted(levels):
    reason = encrypting_gap(**levels)
    assert reason is not None and "allowed: bytes and an empty literal" in reason


def test_the_rules_of_encrypting_replies_hold_for_no_other_reply():
    assert encrypting_gap("topic", reply="echo", payload_bytes=41) is None
