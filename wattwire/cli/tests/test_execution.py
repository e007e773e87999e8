"""Tests of the table of `wattwire exec` on screens of different widths."""

from __future__ import annotations

from wattwire.cli.exec.table import ESTIMATED, LEFT_OUT_FIRST, _columns, _titles

LINES = [
    ["process", *_titles(ESTIMATED)],
    ["listener", "0.539", "0.124", "6.73", "62.8", "65.7", "30.1", "19", "2 028", "0.27 … 16"],
    ["(3 more rows in the data)", "0.2"],
]


def test_a_wide_screen_has_every_column() -> None:
    kept, left_out = _columns(LINES, 120)
    assert (kept, left_out) == (list(range(10)), [])


def test_a_narrow_screen_keeps_names_cpu_time_and_energy() -> None:
    kept, left_out = _columns(LINES, 80)
    assert left_out == ["threads", "switches"]
    assert [LINES[0][at] for at in kept][:2] == ["process", "CPU s"]
    kept, left_out = _columns(LINES, 20)
    assert left_out == list(LEFT_OUT_FIRST)
    assert [LINES[0][at] for at in kept] == [
        "process", "CPU s", "core %", "RSS MiB", "J (estimate)",
    ]  # fmt: skip


def test_without_the_estimate_a_narrow_screen_has_room_for_context_switches() -> None:
    lines = [["process", *_titles("")], *(line[:9] for line in LINES[1:])]
    assert "J (estimate)" not in lines[0]
    kept, left_out = _columns(lines, 80)
    assert left_out == ["threads"] and [lines[0][at] for at in kept][-1] == "switches"
