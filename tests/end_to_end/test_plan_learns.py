"""Test that the duration of a run improves the forecast of the next plan."""

from __future__ import annotations


def test_what_a_campaign_took_is_in_the_next_plan(cli, mini, tmp_path):
    cache = str(tmp_path / "cache")
    before = " ".join(cli("plan", mini, WATTWIRE_CACHE=cache).out.split())
    assert "build first" not in before, "copying files is no build to wait for"
    assert "s for starting and ending (a guess)" in before
    ran = cli("run", mini, "--campaign", "c", "--no-report", WATTWIRE_CACHE=cache)
    assert ran.code == 0, ran.err
    assert "building loopback/python" in ran.out and "built loopback/python in" in ran.out
    after = " ".join(cli("plan", mini, WATTWIRE_CACHE=cache).out.split())
    assert "s for starting and ending (as in earlier runs here)" in after
