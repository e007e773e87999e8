"""Tests of the page with line figures and stacked figures, and of its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from wattwire.report.page import build_report
from wattwire.report.tests.browser import PROGRAM, Browser
from wattwire.report.tests.line_campaign import LINE, STACKED, campaign_of
from wattwire.store import Campaign

CHART = '[data-chart="laid-out-figure-{}"] .vega-embed svg'


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    return build_report(Campaign(campaign_of(folder, [LINE, STACKED])), printed=True)


def test_a_page_has_both_figures_with_their_sentences_and_files(page) -> None:
    text = page.read_text("utf-8")
    assert "Latency by clients" in text and "Hops" in text
    assert "Swift: slope 5" in text and "µs per client" in text
    line, stacked = (
        (page.parent / f"figures/laid-out-figure-{number}.svg").read_text("utf-8")
        for number in (1, 2)
    )
    assert ">medians (µs)<" in stacked
    assert "median latency (µs, log scale)" in line and ">clients<" in line
    assert all(f">median latency, hop {place}<" in stacked for place in (1, 2, 3))


@pytest.mark.browser
@pytest.mark.skipif(PROGRAM is None, reason="no Chromium or Chrome on PATH")
def test_a_browser_draws_every_point_interval_line_and_segment(page, tmp_path) -> None:
    browser = Browser(tmp_path / "profile")
    try:
        browser.open(page)
        for number in (1, 2):
            browser.until(f"document.querySelector('{CHART.format(number)}') !== null")
        counts = {
            kind: browser.value(
                f"document.querySelectorAll('{CHART.format(number)} .mark-{kind}.role-mark > *')"
                ".length"
            )
            for number, kind in ((1, "symbol"), (1, "rule"), (1, "line"), (2, "rect"))
        }
        assert browser.said == []
    finally:
        browser.close()
    # Python's points deviate from its line, so a third line connects them.
    assert counts == {"symbol": 8, "rule": 8, "line": 3, "rect": 24}
