"""The page in a real browser, without a network: every chart is drawn, nothing is refused."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from wattwire.report import build_report
from wattwire.report.tests.synthetic import FileCampaign, Shape, write_campaign

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-sync "
    "--disable-component-update --no-first-run --enable-logging=stderr --virtual-time-budget=20000"
)


@pytest.mark.browser
@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on PATH")
def test_every_chart_becomes_interactive_and_nothing_is_refused(tmp_path) -> None:
    shape = Shape(blocks=2, patterns=("topic", "service"), clients=(1,), unknown_runs=(3,))
    page = build_report(FileCampaign(write_campaign(tmp_path / "campaign", shape)))
    command = [BROWSER, *FLAGS.split(), f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    done = subprocess.run(
        [*command, page.as_uri()], capture_output=True, text=True, timeout=300, check=False
    )
    drawn = done.stdout
    charts = re.findall(r'<div class="chart" data-chart="([\w-]+)">(.{0,200})', drawn, re.S)
    assert len(charts) == 5
    for name, inside in charts:
        assert "vega-embed" in inside, name
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not [line for line in said if "Error" in line or "Refused" in line or "violates" in line]
