"""Measure large campaigns: a table of many runs, its page in a browser, and many messages.

The table has four levels of one factor, five levels of another, and a block for every 20 rows.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.campaigns import run_study
from wattwire.report.tests.browser import PROGRAM, Browser
from wattwire.store import Campaign
from wattwire.store.journal import Attempt

MEBIBYTE = 1024.0 * 1024.0
PAGE_ROWS, IMPORT_ROWS, MESSAGES, MANY_BLOCKS = 100_000, 1_000_000, 10_000_000, 2_500
RESPONSES = 5
LANGUAGES, SIZES = "abcd", (64, 1024, 4096, 16384, 65536)
BLOCK_ROWS = len(LANGUAGES) * len(SIZES)
STUDY = """
title = "A run of many messages"
[factors]
payload_bytes = [64]
[fixed]
cell = "loopback/cpp"
pattern = "pingpong"
loop = "closed"
count = {messages}
[plan]
blocks = 1
controls = false
baseline_s = 0.02
retries = 0
quiet_wait_s = 0.0
[validity]
other_load_max = 1.0
steal_max = 1.0
missed_ticks_max = 1.0
stall_max_ms = 60000.0
"""

SHORT_RUNS = """
title = "Many short runs"
[[question]]
id = "Q1"
text = "Which cell is faster?"
factors = ["cell"]
responses = ["latency_p50_us", "cpu_us_per_message"]
[factors]
payload_bytes = [64, 1024]
cell = ["loopback/python", "loopback/cpp"]
[fixed]
pattern = "pingpong"
loop = "closed"
count = 50
[plan]
blocks = 1
primary = "cell"
warmup_calls = 0
controls = false
baseline_s = 0.02
retries = 0
quiet_wait_s = 0.0
"""


@dataclass(frozen=True)
class Row:
    """One promised limit: the measured quantity, its unit, its value and the limit."""

    name: str
    unit: str
    value: float
    promised: float


def rows(page_rows: int, import_rows: int, messages: int, many_blocks: int) -> Iterator[Row]:
    """Yield one measurement for each promise.

    This takes several minutes, mostly for the messages.
    """
    with tempfile.TemporaryDirectory(prefix="wattwire-bench-") as name:
        folder = Path(name)
        yield from _table_to_page(folder, page_rows)
        yield from _imports(folder, import_rows)
        yield from _many_runs(folder, many_blocks)
        (folder / "study.toml").write_text(STUDY.format(messages=messages))
        campaign = ["--campaign", str(folder / "messages"), "--plain"]
        _, mebibytes = _run(["run", str(folder / "study.toml"), *campaign])
        yield Row(f"controller's memory, a run of {messages:,} calls", "MiB", mebibytes, 1024.0)
        _, mebibytes = _run(["bundle", campaign[1]])
        yield Row("memory of its bundle", "MiB", mebibytes, 500.0)


def _imports(folder: Path, row_count: int) -> Iterator[Row]:
    """Yield measurements of imports of a table: one response, several, and a part of the rows."""
    table = _table(folder / "large.csv", row_count, RESPONSES)
    responses = [word for name in _responses(RESPONSES)[1:] for word in ("--response", name)]
    imports = {
        "": [],
        f", {RESPONSES} responses": responses,
        ", with --where": ["--where", "language=a", "--where", "language=b"],
    }
    for index, (words, options) in enumerate(imports.items()):
        campaign = folder / f"large-{index}"
        seconds, mebibytes = _run([*_import(table, campaign), *options, "--no-report"])
        yield Row(f"import csv of {row_count:,} rows{words}", "s", seconds, 60.0)
        yield Row("its memory", "MiB", mebibytes, 1430.0)
        shutil.rmtree(campaign)
    table.unlink()


def _many_runs(folder: Path, blocks: int) -> Iterator[Row]:
    """Yield measurements of the verbs that read a campaign of many short runs."""
    seed_folder = folder / "seed"
    seed_folder.mkdir()
    seed = Campaign(run_study(seed_folder, SHORT_RUNS))
    campaign = multiplied(seed, folder / "many", blocks)
    seed.close()
    runs = f"a campaign of {4 * blocks:,} runs of 50 messages"
    seconds, _ = _run(["status", str(campaign)])
    yield Row(f"status of {runs}", "s", seconds, 1.0)
    seconds, mebibytes = _run(["report", str(campaign)])
    yield Row(f"report of {runs}", "s", seconds, 20.0)
    yield Row("its memory", "MiB", mebibytes, 500.0)


def _table_to_page(folder: Path, row_count: int) -> Iterator[Row]:
    """Yield measurements of the import of a table with its page, and of the page in Chromium."""
    table = _table(folder / "table.csv", row_count)
    seconds, mebibytes = _run(_import(table, folder / "table"))
    page = folder / "table" / "report" / "index.html"
    yield Row(f"import csv of {row_count:,} rows, with its page", "s", seconds, 20.0)
    yield Row("its memory", "MiB", mebibytes, 1024.0)
    yield Row("its page", "MB", page.stat().st_size / 1e6, 5.0)
    if PROGRAM is None:
        return
    browser = Browser(folder / "profile")
    try:
        browser.open(page)
        opened_ms = browser.value("performance.getEntriesByType('navigation')[0].duration")
    finally:
        browser.close()
    yield Row("opening the page in Chromium", "s", float(opened_ms) / 1000.0, 2.0)


def _import(table: Path, campaign: Path) -> list[str]:
    """Return the arguments of `wattwire` that import a table."""
    columns = ["--response", "latency:us", "--factor", "language", "--factor", "size"]
    return ["import", "csv", str(table), *columns, "--block", "block", "--campaign", str(campaign)]


def _responses(count: int) -> list[str]:
    return ["latency", *(f"latency_{number}" for number in range(2, count + 1))]


def _table(path: Path, row_count: int, responses: int = 1) -> Path:
    """Write a CSV file of simulated runs, and return its path.

    Each block has every combination of levels once. The seed is fixed.
    """
    draw = random.Random(1)
    with path.open("w", encoding="utf-8") as file:
        file.write(f"block,language,size,{','.join(_responses(responses))}\n")
        for number in range(row_count):
            block, place = divmod(number, BLOCK_ROWS)
            language, size = place % len(LANGUAGES), place // len(LANGUAGES)
            mean = 100 * (1 + 0.2 * language) * (1 + 0.1 * size)
            cells = [f"{mean * (1 + 0.05 * draw.gauss(0, 1)):.3f}" for _ in range(responses)]
            file.write(f"{block},{LANGUAGES[language]},{SIZES[size]},{','.join(cells)}\n")
    return path


def _run(arguments: list[str]) -> tuple[float, float]:
    """Return the wall time (s) and the peak memory (MiB) of `wattwire ARGUMENTS` itself."""
    begun_s = time.monotonic()
    command = [sys.executable, "-m", "wattwire", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak_kib = [0]
    watcher = threading.Thread(target=_watch, args=(process.pid, peak_kib), daemon=True)
    watcher.start()
    _, errors = process.communicate()
    watcher.join()
    if process.returncode != 0:
        raise RuntimeError(f"wattwire {' '.join(arguments)}: {os.fsdecode(errors)}")
    return time.monotonic() - begun_s, peak_kib[0] * 1024 / MEBIBYTE


def _watch(pid: int, peak_kib: list[int]) -> None:
    """Record the peak resident memory of a process, without its children, until it ends."""
    while True:
        try:
            status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        except OSError:
            return
        peak_fields = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
        if not peak_fields:  # the process is a zombie
            return
        peak_kib[0] = max(peak_kib[0], int(peak_fields[0]))
        time.sleep(0.02)


SPREAD = 0.05
"""Standard deviation of the simulated variation between runs, on the log scale."""
VARIED = ("latency_", "since_send_", "cpu_", "rate_hz_", "throughput_")
"""Beginnings of the names of the responses that vary. The seed is fixed."""


def multiplied(seed: Campaign, folder: Path, blocks: int) -> Path:
    """Write a campaign with `blocks` copies of the single block of `seed`; return its folder.

    The tables of the copies are links to the tables of the originals.
    """
    draw = random.Random(1)
    campaign = Campaign.create(folder)
    plan, summaries, originals = [], [], seed.plan
    for entry, block in _copies(originals, blocks):
        run = f"b{block:02d}-p{entry['position']:03d}"
        old = seed.folder(entry["run"])
        new = campaign.path / "runs" / f"{run}-1"
        keys = {"run": run, "block": block}
        row = {**json.loads((old / "summary.json").read_text("utf-8")), **keys}
        for name in [n for n in row if n.startswith(VARIED) and isinstance(row[n], float)]:
            row[name] *= draw.lognormvariate(0.0, SPREAD)
        _copy(old, new, {"summary.json": row, "run.json": keys})
        plan.append({**entry, **keys})
        summaries.append({**row, "used": True})
    study = seed.study_document
    campaign.freeze("study.json", {**study, "plan": {**study["plan"], "blocks": blocks}})
    campaign.freeze("plan.json", plan)
    for name in ("machine.json", "study.toml"):
        shutil.copyfile(seed.path / name, campaign.path / name)
    campaign.journal.write_plan(
        ((e["run"], e["block"], e["position"], e["treatment_key"]) for e in plan),
        identity=seed.journal.get("identity"),
    )
    names = [entry["run"] for entry in plan]
    campaign.journal.add_finished(
        (Attempt(n, 1, "done", "token", "valid", "completed", f"{n}-1") for n in names),
        "2026-01-01T00:00:00",
    )
    campaign.write_summary(summaries, seed.read_json("columns.json"))
    campaign.close()
    return folder


def _copies(plan: list[dict[str, Any]], blocks: int) -> Iterator[tuple[dict[str, Any], int]]:
    for block in range(1, blocks + 1):
        for entry in plan:
            yield entry, block


def _copy(old: Path, new: Path, changes: dict[str, dict[str, Any]]) -> None:
    """Link the tables of a run's folder, and write its documents with these changes."""
    new.mkdir()
    for path in sorted(old.iterdir()):
        if path.name in changes:
            document = {**json.loads(path.read_text("utf-8")), **changes[path.name]}
            (new / path.name).write_text(json.dumps(document), "utf-8")
        elif path.is_file():
            os.link(path, new / path.name)
