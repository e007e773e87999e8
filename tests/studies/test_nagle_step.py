"""Test on this machine that the study nagle-step shows the step, but not with TCP_NODELAY."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from wattwire.model.validity import ValidityLimits

pytestmark = pytest.mark.quiet

HANG_S = 800
TRIES = 3
STEAL_MAX = ValidityLimits().steal_max
"""The study's limit on the stolen share of the cores, above which a run is excluded."""
DELAYED_US = 36_000
FOUND = "Messages wait 40 ms for an acknowledgement"


def report_of(folder: Path, only: str, *more: str) -> Path:
    """Run some treatments of the smoke preset without limits on other load."""
    command = [
        *(sys.executable, "-m", "wattwire", "run", "nagle-step", "--preset", "smoke"),
        *("--set", "validity.other_load_max=1000", "--set", "validity.steal_max=1"),
        *("--set", "validity.stall_max_ms=60000"),
        *("--set", "plan.retries=2", "--only", only, *more, "--campaign", str(folder)),
    ]
    done = subprocess.run(
        command, env=dict(os.environ), capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "report"


def stolen(report: Path) -> float:
    """Return the largest share of the cores that the host stole during a run."""
    with (report.parent / "summary.csv").open(newline="") as file:
        return max(float(row["steal_share"]) for row in csv.DictReader(file))


@pytest.fixture(scope="module", autouse=True)
def cured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Future[Path]]:
    """Return the report with TCP_NODELAY. Its campaign runs during the first test.

    Both mostly wait, and a wait of 40 ms is visible despite the load of the other.
    """
    only = "language=python,payload_bytes=64|1024,settings.tcp_nodelay=true"
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(report_of, tmp_path_factory.mktemp("cured") / "none", only)


def test_two_writes_without_nodelay_wait_and_the_report_says_why(tmp_path: Path) -> None:
    only = "language=python,payload_bytes=64|1024,settings.writes=2"
    taken: list[float] = []
    for number in range(TRIES):
        report = report_of(tmp_path / f"step{number}", only, "--set", "plan.blocks=3")
        page = (report / "index.html").read_text(encoding="utf-8")
        assert f"{FOUND}: shown by this study" in page
        with (report / "tables" / "finding-delayed-acknowledgements.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            assert row["settings.tcp_nodelay"] == "no"
            assert int(row["inside"]) > 0.8 * int(row["messages"])
        if {row["payload_bytes"] for row in rows} == {"64", "1024"}:
            return
        taken.append(stolen(report))
        assert taken[-1] > STEAL_MAX, rows
    pytest.skip(f"waits of 40 ms took longer: the host took {taken} of the cores in a run")


def test_with_nodelay_nothing_is_found(cured: Future[Path]) -> None:
    report = cured.result()
    page = (report / "index.html").read_text(encoding="utf-8")
    assert FOUND not in page
    assert "No finding." in page


def test_delayed_acknowledgements_of_one_way_connections_hold_the_next_call(
    tmp_path: Path,
) -> None:
    """No upper limit is asserted; the wait is that of the kernel's timer."""
    only = "language=python,payload_bytes=64,settings.tcp_quickack=off"
    command = [
        *(sys.executable, "-m", "wattwire", "run", "nagle-step", "--preset", "one-way", "--look"),
        *("--set", "plan.blocks=1", "--set", "plan.controls=false", "--only", only),
        *("--campaign", str(tmp_path / "campaign"), "--no-report"),
    ]
    done = subprocess.run(
        command, env=dict(os.environ), capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with (tmp_path / "campaign" / "summary.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["lost"] == "0"
    assert float(row["latency_p50_us"]) >= DELAYED_US, row
