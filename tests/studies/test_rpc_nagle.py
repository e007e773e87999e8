"""Test on this machine that rpc-nagle detects the waits of cpp-httplib and JAX-WS.

TCP_NODELAY removes these waits.
"""

from __future__ import annotations

import csv
import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from wattwire.catalog import Catalog
from wattwire.model.errors import MissingError
from wattwire.rig import AgentClient, Builder
from wattwire.rig.builds import NotBuiltError

pytestmark = pytest.mark.quiet

HANG_S = 800
FOUND = "Messages wait 40 ms for an acknowledgement"
BUSY_US = 10_000.0
"""A call of JAX-WS without a wait takes 3 ms; the wait must clearly exceed that."""
WAITING, JAVA, SILENT = "rest/cpp", "rpc/java", ("rest/go", "rest/javascript", "rest/rust")


def why_not(name: str, state: Path, unbuilt: bool = False) -> str:
    """Return the reason why a cell cannot be measured, or "".

    With `unbuilt`, a missing build is not a reason.
    """
    catalog = Catalog()
    state.mkdir(exist_ok=True)
    agent = AgentClient(state)
    try:
        Builder(agent, look=True).cell(catalog.cell(name))
    except NotBuiltError as error:
        return "" if unbuilt else str(error)
    except MissingError as error:
        return str(error)
    finally:
        agent.close()
    return ""


def measured(folder: Path, cells: list[str], blocks: int, count: int = 15) -> Path:
    """Return the report of the smoke preset for these cells, without limits on other load."""
    command = [
        *(sys.executable, "-m", "wattwire", "run", "rpc-nagle", "--preset", "smoke"),
        *("--set", "validity.other_load_max=1000", "--set", "validity.steal_max=1"),
        *("--set", "validity.stall_max_ms=60000", "--set", f"plan.blocks={blocks}"),
        *("--set", f"count={count}"),
        *("--set", "cell=[" + ", ".join(f'"{name}"' for name in cells) + "]"),
        *("--set", "plan.ready_timeout_s=60", "--set", "plan.retries=2"),
        *("--campaign", str(folder / "campaign")),
    ]
    done = subprocess.run(
        command, env=dict(os.environ), capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "campaign" / "report"


def found_in(report: Path, alone: str) -> dict[tuple[str, str], dict[str, str]]:
    """Return the rows of the finding by cell and setting; a single cell has no column."""
    with (report / "tables" / "finding-delayed-acknowledgements.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {(row.get("cell", alone), row["settings.tcp_nodelay"]): row for row in rows}


def cured_median_us(summary: Path) -> float:
    """Return the median over runs of the median call (µs), with TCP_NODELAY at both ends."""
    with summary.open(newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["factor.settings.tcp_nodelay"] == "on"]
    return statistics.median(float(row["latency_p50_us"]) for row in rows)


def test_the_wait_of_cpp_httplib_is_found_explained_and_cured_and_no_other_cell_named(
    tmp_path: Path,
) -> None:
    reason = why_not(WAITING, tmp_path / "looking", unbuilt=True)
    if reason:
        pytest.skip(reason)
    silent = [name for name in SILENT if not why_not(name, tmp_path / "looking")][:1]
    report = measured(tmp_path, [WAITING, *silent], blocks=5)  # the minimum for a sign test
    page = (report / "index.html").read_text(encoding="utf-8")
    assert f"{FOUND}: shown by this study" in page
    assert "“tcp nodelay” as off" in page, "the setting in force, as the nodes reported it"
    found = found_in(report, WAITING)
    assert list(found) == [(WAITING, "default")]
    row = found[WAITING, "default"]
    assert int(row["inside"]) > 0.8 * int(row["messages"])


@pytest.mark.matrix
def test_the_wait_of_jax_ws_is_found_and_cured(tmp_path: Path) -> None:
    reason = why_not(JAVA, tmp_path / "looking", unbuilt=True)
    if reason:
        pytest.skip(reason)
    report = measured(tmp_path, [JAVA], blocks=3, count=40)
    cured_us = cured_median_us(report.parent / "summary.csv")
    if cured_us > BUSY_US:
        pytest.skip(f"calls that do not wait take {cured_us:.0f} µs: too busy a machine to tell")
    assert list(found_in(report, JAVA)) == [(JAVA, "default")]
