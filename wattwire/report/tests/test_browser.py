"""Tests of charts, filters and keys of the page in a browser without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from wattwire.report.page import build_report
from wattwire.report.tests.browser import PROGRAM, Browser
from wattwire.report.tests.synthetic import FAST, SLOW, Shape, write_campaign
from wattwire.store import Campaign

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(PROGRAM is None, reason="no Chromium or Chrome on PATH"),
]
CHART = "#explorer-chart svg"
ROWS = "#table-latency-percentiles tbody tr"


def tick(factor: int, level: str) -> str:
    return f'[data-factor="{factor}"] input[data-level="{level}"]'


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    shape = Shape(
        blocks=6, duration_s=4.0, patterns=("topic", "service"), clients=(1,), unknown_runs=(3,)
    )
    folder = tmp_path_factory.mktemp("page")
    return build_report(Campaign(write_campaign(folder / "campaign", shape)))


@pytest.fixture(scope="module")
def opened(tmp_path_factory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("browser") / "profile")
    yield made
    made.close()


@pytest.fixture
def browser(page, opened) -> Iterator[Browser]:
    opened.open(page)
    opened.until(f"document.querySelector('{CHART}') !== null")
    yield opened
    assert opened.said == []
    assert all(address.startswith(("file:", "data:", "blob:")) for address in opened.asked)


def test_every_chart_becomes_interactive_and_nothing_is_refused(browser, page) -> None:
    charts = "[...document.querySelectorAll('[data-chart]')]"
    assert not (page.parent / "figures").exists(), "nobody asked for files of figures"
    assert browser.value(f"{charts}.length") >= 8
    browser.until(f"{charts}.every((chart) => chart.querySelector('.vega-embed svg'))")


def test_ticks_choose_the_runs_of_the_chart_and_the_rows_of_tables(browser) -> None:
    assert browser.words("#shown") == "47 of 47 valid runs shown"
    every = browser.all_words(ROWS)
    assert len(every) == 8
    browser.click(tick(0, SLOW))
    assert browser.words("#shown") in ("23 of 47 valid runs shown", "24 of 47 valid runs shown")
    left = browser.all_words(ROWS)
    assert len(left) == 4 and all("Swift" in row for row in left)
    noted = browser.words("#table-latency-percentiles .filtered")
    assert noted == "4 of 8 rows shown; filter: Explore the runs"
    browser.until(f"!document.querySelector('{CHART}').textContent.includes('Python')")
    assert "Swift" in browser.words(CHART)

    browser.click(tick(1, "topic"))
    left = browser.all_words(ROWS)
    assert len(left) == 2 and all("service" in row for row in left)
    # A table that pools over the factor keeps its rows. A table with the factor's titles loses
    # rows.
    assert set(browser.all_words("#table-costs-by-role tbody td:first-child")) == {"service"}

    browser.click(tick(0, FAST))
    assert browser.words("#shown") == "0 of 47 valid runs shown"
    assert "No run to show" in browser.words("#explorer-says")

    browser.click("#show-all")
    assert browser.words("#shown") == "47 of 47 valid runs shown"
    assert browser.all_words(ROWS) == every
    browser.until(f"document.querySelector('{CHART}') !== null")


def test_filters_are_reached_and_set_by_keys_alone(browser) -> None:
    browser.value("document.querySelector('#choose-log').focus()")
    browser.press("Tab")
    assert browser.value("document.activeElement.dataset.level") == FAST
    browser.press(" ")
    assert len(browser.all_words(ROWS)) == 4
    browser.press("Tab")
    assert browser.value("document.activeElement.dataset.level") == SLOW
    browser.press(" ")
    assert browser.all_words(ROWS) == []
    browser.press(" ")
    assert len(browser.all_words(ROWS)) == 4
    assert browser.value("document.querySelector('#shown').getAttribute('role')") == "status"


def test_runs_excluded_are_shown_on_demand_and_counted_in_words(browser) -> None:
    browser.click("#with-excluded")
    assert browser.words("#shown") == "48 of 48 runs shown"


def test_every_kind_of_chart_is_drawn_for_every_response(browser) -> None:
    values = "[...document.querySelectorAll('#choose-{} option')].map((it) => it.value)"
    kinds = browser.value(values.format("kind"))
    responses = browser.value(values.format("value"))
    assert len(kinds) == 7 and len(responses) >= 5
    for kind in kinds:
        for response in responses[::3]:
            browser.value("document.querySelector('#explorer-chart').replaceChildren()")
            browser.pick("#choose-kind", kind)
            browser.value("document.querySelector('#explorer-chart').replaceChildren()")
            browser.pick("#choose-value", response)
            browser.until(
                f"document.querySelector('{CHART} .role-mark path, {CHART} text') !== null"
            )
    title = browser.value("document.querySelector('#choose-value').selectedOptions[0].text")
    browser.until(
        f"document.querySelector('{CHART}').textContent.includes({title.split(' (')[0]!r})"
    )


def test_a_section_without_data_opens_with_its_link(browser) -> None:
    fold = "document.querySelector('#proportion > details')"
    assert browser.value(f"{fold}.open") is False
    browser.click('nav a[href="#proportion"]')
    browser.until(f"{fold}.open")
