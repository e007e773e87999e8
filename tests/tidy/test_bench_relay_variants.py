"""Test the verdicts and the journal of the bench on variants of a relay."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from bench import relay_variants
from bench.relay_variants import DIFFERENCE, RELAY, SAME, Try


def tries(kind: str, verdicts: list[str]) -> list[Try]:
    return [
        Try(number, kind, 5.0, verdict, {"cpu_s": [1.2, 1.3 + number / 100, 1.4]})
        for number, verdict in enumerate(verdicts)
    ]


@pytest.mark.parametrize(
    ("kind", "worse", "verdict"),
    [
        (DIFFERENCE, 19, "passed"),
        (DIFFERENCE, 18, "failed"),
        (SAME, 1, "passed"),
        (SAME, 2, "failed"),
    ],
)
def test_a_difference_is_missed_and_noise_alarms_in_at_most_one_of_twenty(kind, worse, verdict):
    results = tries(kind, ["worse"] * worse + ["cannot tell"] * (20 - worse))
    row = relay_variants.row(kind, results)
    assert f"| 20 | {worse} |" in row and verdict in row and "1.300 to 1.490" in row


def test_a_try_in_the_journal_with_the_same_window_is_not_repeated(tmp_path, monkeypatch):
    journal = tmp_path / "tries.jsonl"
    made = []

    def try_(number, kind, window_s):
        made.append((number, kind, window_s))
        return Try(number, kind, window_s, "worse", {})

    monkeypatch.setattr(relay_variants, "_try", try_)
    relay_variants.measure(1, 5.0, journal)
    relay_variants.measure(2, 5.0, journal)
    assert len(relay_variants.measure(1, 2.0, journal)) == 2
    assert made == [
        (1, DIFFERENCE, 5.0), (1, SAME, 5.0), (2, DIFFERENCE, 5.0), (2, SAME, 5.0),
        (1, DIFFERENCE, 2.0), (1, SAME, 2.0),
    ]  # fmt: skip
    assert len(list(map(json.loads, journal.read_text().splitlines()))) == 6


def test_a_try_of_another_commit_or_of_an_old_journal_is_repeated(tmp_path, monkeypatch):
    journal = tmp_path / "tries.jsonl"
    made = []

    def try_(number, kind, window_s):
        made.append(number)
        return Try(number, kind, window_s, "worse", {})

    monkeypatch.setattr(relay_variants, "_try", try_)
    journal.write_text(
        '{"number": 1, "kind": "A/A", "window_s": 5.0, "verdict": "worse", "ratios": {}}\n'
    )
    relay_variants.measure(1, 5.0, journal)
    monkeypatch.setattr(relay_variants, "commit", lambda: "another")
    assert [result.commit for result in relay_variants.measure(1, 5.0, journal)] == ["another"] * 2
    assert len(made) == 4


def test_the_relay_prints_a_latency_of_at_least_its_work():
    argv = [sys.executable, "-S", RELAY, "4"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True) as relay:
        assert relay.stdout is not None
        assert relay.stdout.readline() == "the first message came\n"
        time.sleep(0.2)  # several messages
        os.killpg(relay.pid, signal.SIGINT)
        name, _, value = relay.stdout.read().strip().partition("=")
    assert relay.returncode == 0 and name == "p50_ms" and float(value) >= 4.0
