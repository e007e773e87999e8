"""Test when a server counts as slower for clients of other cells, and that it is stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from wattwire.rig.stranger_calls import StrangerCalls, note_stranger_calls, stranger_calls


def measured(own_us: float, stranger_us: float, at_home_us: float) -> StrangerCalls:
    return StrangerCalls(own_us, {"rest/go": stranger_us}, {"rest/go": at_home_us}, "2026-01-31")


@pytest.mark.parametrize(
    ("own_us", "stranger_us", "at_home_us", "is_slower"),
    [
        (120.0, 43_000.0, 110.0, True),  # Nagle's algorithm with delayed acknowledgements
        (120.0, 330.0, 110.0, False),
        (120.0, 500.0, 450.0, False),  # the client is slow with every server
        (400.0, 500.0, 110.0, False),  # the server is slow for every client
    ],
)
def test_a_server_is_slower_only_beside_both_its_own_client_and_the_strangers_server(
    own_us: float, stranger_us: float, at_home_us: float, is_slower: bool
) -> None:
    assert bool(measured(own_us, stranger_us, at_home_us).slower_us) is is_slower


def test_what_was_measured_belongs_to_its_build(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WATTWIRE_CACHE", str(tmp_path))
    calls = measured(120.0, 43_000.0, 110.0)
    note_stranger_calls("one", calls)
    assert stranger_calls("one") == calls
    assert stranger_calls("another") is None
