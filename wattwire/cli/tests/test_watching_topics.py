"""What `topics` prints about a probe that ends early, about its windows and its perturbation."""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
import pytest

from wattwire import stats
from wattwire.analysis.streams.recorded import NO_STAMP, RECORD, Graph, Records
from wattwire.catalog import Catalog, Probe
from wattwire.cli.topics import watch as topics
from wattwire.model.errors import WattwireError


class EndingWatch:
    """A watch whose probe has read 10 messages when it ends."""

    def __init__(self) -> None:
        self.graph = Graph()
        fact = {"kind": "stream", "index": 0, "gid": "00", "topic": "/t", "node": "/n"}
        self.graph.take({**fact, "same_host": True})
        self._read_ns = 0

    def sleep(self, _seconds: float) -> None:
        self._read_ns = time.monotonic_ns()
        time.sleep(0.001)
        raise WattwireError("the probe ended with signal 9")

    def close(self) -> None:
        pass

    def records(self) -> Records:
        rows = np.zeros(10, dtype=RECORD)
        rows["monotonic_ns"] = self._read_ns + np.arange(10)
        rows["taken_ns"], rows["source_ns"] = rows["monotonic_ns"] + 10, rows["monotonic_ns"]
        rows["stamp_ns"], rows["sequence"], rows["bytes"] = NO_STAMP, np.arange(10), 8
        return rows


def the_probe() -> Probe:
    catalog = Catalog()
    return catalog.probe(next(iter(catalog.probes)))


def test_what_a_probe_has_read_is_printed_before_the_error_that_ends_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = argparse.Namespace(json=True, live=False)
    with pytest.raises(WattwireError, match="signal 9"):
        topics.observed(EndingWatch(), 5.0, options, the_probe())  # type: ignore[arg-type]
    (line,) = [x for x in capsys.readouterr().out.splitlines() if '"kind": "stream"' in x]
    assert json.loads(line)["messages"] == 10


def test_a_difference_is_only_named_if_its_interval_excludes_zero() -> None:
    for differences, text in (
        ([0.02, -0.03, 0.01, -0.02], "No difference was detected"),
        ([0.051, 0.049, 0.05, 0.052], "used 5.1 % of a core more than without it (95 % interval"),
        ([-0.051, -0.049, -0.05, -0.052], "used 5.1 % of a core less than without it"),
        ([0.05, 0.05], "too few for an interval"),
    ):
        sentence = topics.perturbation_sentence(differences, stats.mean_interval(differences))
        assert text in sentence, sentence


def test_the_perturbation_has_its_interval_also_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    topics.show_perturbation([0.051, 0.049, 0.05], as_json=True)
    document = json.loads(capsys.readouterr().out)
    low, high = document["interval"]
    assert low < document["mean"] < high and document["level"] == 0.95
    topics.show_perturbation([0.05, 0.05], as_json=True)
    assert json.loads(capsys.readouterr().out)["interval"] is None


def test_the_last_window_of_a_campaign_has_its_number(capsys: pytest.CaptureFixture[str]) -> None:
    result = topics.watched(Graph(), np.empty(0, dtype=RECORD), 0, 10**9)
    topics.show_result(result, the_probe(), False, (4, 5))
    assert capsys.readouterr().out.startswith("Window 4 of 5; the page has all of them.")
    topics.show_result(result, the_probe(), False)
    assert "Window" not in capsys.readouterr().out
