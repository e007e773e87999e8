"""Try whether `exec --variant` finds that the work of a relay grew, and is silent if it did not.

Each try of a difference compares relays that work 3 and 4 ms per message; each A/A try compares a
relay of 3 ms with itself. The two kinds alternate. Both the CPU time and the median latency that
the relay prints are compared, and a try alarms if either is worse, as a CI job would fail.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

RELAY = Path(__file__).with_name("bare") / "relay.py"
TRIES, BLOCKS, WINDOW_S, WARM_UP_S, BASELINE_S = 20, 10, 5.0, 0.3, 0.2
DIFFERENCE, SAME = "difference", "A/A"
WORK_MS = {DIFFERENCE: (3, 4), SAME: (3, 3)}
FOUND_SHARE_MIN, ALARM_SHARE_MAX = 0.95, 0.05
WORSE = "worse"
TIMEOUT_S = 3600.0


@dataclass(frozen=True)
class Try:
    """One comparison: its number, its kind, its window (s), its verdict, and its ratios."""

    number: int
    kind: str
    window_s: float
    verdict: str
    ratios: dict[str, list[float]]
    """Response → lower limit, estimate and upper limit of head over base."""
    commit: str = ""
    """Commit of wattwire, with a digest of uncommitted changes."""


def report(tries: int, window_s: float, journal: Path) -> None:
    """Make the tries that the journal lacks, and print the numbers of both kinds."""
    results = measure(tries, window_s, journal)
    print(f"\n## `exec --variant` of a relay, {BLOCKS} blocks of {window_s:g} s\n")
    print("| work | tries | worse | target | verdict | ratio of CPU time, range |")
    print("|---|---|---|---|---|---|")
    for kind in WORK_MS:
        print(row(kind, [result for result in results if result.kind == kind]), flush=True)


def measure(tries: int, window_s: float, journal: Path) -> list[Try]:
    """Return the tries of both kinds with this window, with those of this code in the journal."""
    lines = journal.read_text().splitlines() if journal.exists() else []
    code = commit()
    results = [
        result
        for line in lines
        if (result := Try(**json.loads(line))).window_s == window_s and result.commit == code
    ]
    done = {(result.number, result.kind) for result in results}
    for number in range(1, tries + 1):
        for kind in WORK_MS:
            if (number, kind) not in done:
                results.append(replace(_try(number, kind, window_s), commit=code))
                with journal.open("a") as file:
                    file.write(json.dumps(asdict(results[-1])) + "\n")
    return [result for result in results if result.number <= tries]


def commit() -> str:
    """Return the commit of the repository, with a digest of its uncommitted changes."""
    head, changes = (
        subprocess.run(["git", *words], cwd=RELAY.parent, capture_output=True, check=True).stdout
        for words in (["rev-parse", "HEAD"], ["diff", "HEAD", "--", ":/"])
    )
    digest = f"+{hashlib.sha256(changes).hexdigest()[:12]}" if changes else ""
    return head.decode().strip() + digest


def row(kind: str, results: Sequence[Try]) -> str:
    """Return the table row of a kind, with its verdict."""
    worse = sum(result.verdict == WORSE for result in results)
    share = worse / len(results)
    is_found = kind == DIFFERENCE
    passed = share >= FOUND_SHARE_MIN if is_found else share <= ALARM_SHARE_MAX
    target = f"≥ {FOUND_SHARE_MIN:.0%}" if is_found else f"≤ {ALARM_SHARE_MAX:.0%}"
    ratios = [result.ratios["cpu_s"][1] for result in results if "cpu_s" in result.ratios]
    ends = f"{min(ratios):.3f} to {max(ratios):.3f}" if ratios else "–"
    works = " and ".join(f"{work} ms" for work in WORK_MS[kind])
    verdict = "passed" if passed else "failed"
    return f"| {works} | {len(results)} | {worse} | {target} | {verdict} | {ends} |"


def _try(number: int, kind: str, window_s: float) -> Try:
    variants = []
    for name, work_ms in zip(("base", "head"), WORK_MS[kind], strict=True):
        command = shlex.join([sys.executable, "-S", str(RELAY), str(work_ms)])
        variants += ["--variant", f"{name}={command}"]
    with tempfile.TemporaryDirectory(prefix="wattwire-bench-") as scratch:
        argv = [
            sys.executable, "-m", "wattwire", "exec", "--json", "--no-report",
            "--campaign", f"{scratch}/campaign", "--repeat", str(BLOCKS), "--for", f"{window_s}s",
            "--warmup", f"{WARM_UP_S}s", "--baseline", f"{BASELINE_S}s",
            "--value-from", "p50_ms", *variants,
        ]  # fmt: skip
        result = subprocess.run(
            argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    documents = [json.loads(line) for line in result.stdout.splitlines()]
    comparison = documents[-1] if documents else {}
    verdict = comparison.get("verdict", "")
    # The exit code is 1, too, if a relay failed.
    if not verdict or (result.returncode == 1) != (verdict == WORSE):
        raise RuntimeError(f"try {number}, {kind}: exit code {result.returncode}: {result.stderr}")
    return Try(number, kind, window_s, verdict, dict(_ratios(comparison["items"])))


def _ratios(items: Sequence[dict[str, Any]]) -> list[tuple[str, list[float]]]:
    return [
        (item["response"], [item["low"], item["ratio"], item["high"]])
        for item in items
        if item.get("ratio") is not None
    ]
