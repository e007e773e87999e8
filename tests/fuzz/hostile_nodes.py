"""Campaigns of nodes that break the contract, one mode a run (hostile/…/deeds.py lists them).

`python -m tests.fuzz.hostile_nodes [MODE …]` runs all modes, or these, and prints each outcome; the
tests run a seeded sample.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HOSTILE = Path(__file__).parent / "hostile"
STUDY = """
title = "Hostile nodes"
[factors]
payload_bytes = [64]
"settings.mode" = {modes}
[fixed]
middleware = "hostile"
language = "python"
pattern = "topic"
rate_hz = 100
timeout_ms = 500
[plan]
blocks = 1
controls = false
duration_s = 0.2
baseline_s = 0.02
linger_ms = 50
quiet_ms = 10
retries = 0
quiet_wait_s = 0.0
ready_timeout_s = 10.0
[validity]
other_load_max = 1000.0
steal_max = 1.0
missed_ticks_max = 1.0
stall_max_ms = 60000.0
free_disk_bytes_min = 0
"""
PATIENCE_PER_RUN_S = 40
CONTROLLER_BYTES_MAX = 1 << 30


def load_deeds() -> dict[str, Any]:
    """Return the modes of the hostile cell, by name."""
    path = HOSTILE / "middleware" / "hostile" / "python" / "deeds.py"
    spec = importlib.util.spec_from_file_location("deeds", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["deeds"] = module
    spec.loader.exec_module(module)
    return dict(module.DEEDS)


@dataclass
class Finding:
    """Outcome of one mode, with its faults."""

    mode: str
    verdict: str
    outcome: str
    detail: str
    problems: list[str]


def sample(count: int, seed: int) -> list[str]:
    """Return a seeded sample of `count` quick modes."""
    deeds = load_deeds()
    quick = [name for name, deed in deeds.items() if not deed.slow and name != "honest"]
    return random.Random(seed).sample(quick, count)


def run_modes(folder: Path, modes: Sequence[str]) -> tuple[list[Finding], list[str]]:
    """Run one campaign of these modes; return the findings by mode and the global problems."""
    victim = folder / "victim"
    victim.mkdir()
    (victim / "precious").write_text("precious")
    (victim / "samples-precious.bin").write_text("precious")
    study = folder / "hostile.toml"
    study.write_text(STUDY.format(modes=json.dumps(["honest", *modes])))
    words = [
        sys.executable, "-m", "wattwire", "run", str(study), "--campaign", str(folder / "c"),
        "--plain", "--yes",
    ]  # fmt: skip
    problems = []
    code, peak_bytes, text = _bounded(folder, words, len(modes) + 1, victim)
    problems += _text_problems(text)
    if code not in (0, 1):
        problems.append(f"wattwire run ended with {code}: {text[-400:]}")
    if peak_bytes > CONTROLLER_BYTES_MAX:
        problems.append(f"the controller took {peak_bytes:,} bytes")
    held = {path.name: path.read_text() for path in victim.iterdir()}
    if held != {"precious": "precious", "samples-precious.bin": "precious"}:
        problems.append(f"written outside the campaign: {held}")
    findings = [_finding(folder / "c", mode) for mode in ["honest", *modes]]
    return findings, problems


def _bounded(folder: Path, words: list[str], runs: int, victim: Path) -> tuple[int, int, str]:
    """Run a command with limits; return its exit code, peak memory and output."""
    environment = {
        **os.environ, "WATTWIRE_PATH": str(HOSTILE), "HOSTILE_VICTIM": str(victim),
        "WATTWIRE_HEAVY": "skip",
    }  # fmt: skip
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            words, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        until = time.monotonic() + PATIENCE_PER_RUN_S * runs
        while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
            if time.monotonic() > until:
                process.kill()
                ended = os.wait4(process.pid, 0)
                break
            time.sleep(0.05)
    process.returncode = os.waitstatus_to_exitcode(ended[1])
    text = (folder / "output").read_text(errors="backslashreplace")
    return process.returncode, ended[2].ru_maxrss * 1024, text


def _text_problems(text: str) -> list[str]:
    found = [f"output holds {word!r}" for word in ("Traceback", "\x1b", "\x07") if word in text]
    return [*found, text[-2000:]] if found else []


def _finding(campaign: Path, mode: str) -> Finding:
    expected = load_deeds()[mode].expected
    folders = []
    for path in sorted((campaign / "runs").glob("b*/run.json")):
        document = json.loads(path.read_text(), parse_constant=_refuse)
        if document["levels"]["settings.mode"] == mode:
            folders.append((path.parent, document))
    if len(folders) != 1:
        return Finding(mode, "", "", "", [f"{len(folders)} attempts were kept, not 1"])
    folder, document = folders[0]
    row = json.loads((folder / "summary.json").read_text(), parse_constant=_refuse)
    verdict, outcome = document["verdict"], document["outcome"]
    problems = []
    sound = verdict == "valid" and outcome == "completed"
    if expected == "fails" and verdict != "failed":
        problems.append("the contract was broken, but the verdict is not failed")
    if expected == "counts" and verdict == "valid":
        problems.append("the counts do not fit, but the verdict is ok")
    if expected == "ends" and (verdict != "failed" and outcome == "completed"):
        problems.append("a node did not end as it should, but the run is completed")
    if expected == "survives" and not sound:
        problems.append("what does the measurement no harm ended the run")
    # A busy machine may deliver late, but a forged time is further off.
    if sound and not 0 < (row.get("since_send_p50_us") or 0) < 1e6:
        problems.append(f"a sound run has p50 {row.get('since_send_p50_us')} µs")
    told = [reason["detail"] for reason in document["reasons"]] + [document["outcome_detail"]]
    internal = [r for r in document["reasons"] if r["code"] in ("exception", "harness")]
    if expected == "fails" and not internal and not any("C-" in text for text in told):
        problems.append(f"no clause is named: {told}")
    if not all((folder / name).is_file() for name in ("messages.parquet", "events.parquet")):
        problems.append("files of the attempt are missing")
    return Finding(mode, verdict, outcome, " / ".join(filter(None, told)), problems)


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is not a JSON number")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modes", nargs="*", metavar="MODE")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    modes = options.modes or [name for name in load_deeds() if name != "honest"]
    folder = Path(tempfile.mkdtemp(prefix="wattwire-hostile-"))
    findings, problems = run_modes(folder, modes)
    for finding in findings:
        print(f"{finding.mode:24} {finding.verdict:8} {finding.outcome:10} {finding.detail[:150]}")
        for problem in finding.problems:
            print(f"    WRONG: {problem}")
    wrong = sum(bool(finding.problems) for finding in findings)
    print("\n".join(problems))
    print(f"{len(findings)} modes, {wrong} wrong; {len(problems)} faults of the whole campaign")
    if wrong or problems or options.keep:
        print(f"kept: {folder}")
        return int(bool(wrong or problems))
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
