"""Test that the benches of layers fail without recordings, and judge by limits, not estimates."""

import os
import resource
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from bench.nodes import peak_mib
from bench.recorded_layers import costs, delays
from bench.recorded_layers.delays import Slopes
from wattwire.model.layers import LAYERS


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
def test_the_time_of_an_event_is_that_of_a_recorded_one(tmp_path, monkeypatch):
    monkeypatch.setenv("WATTWIRE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(costs, "EVENTS", 1000)
    (tmp_path / "on").mkdir()
    assert costs.event_times_ns(SimpleNamespace(folder=tmp_path / "on"), 2)

    environment = costs.Recordings.environment
    monkeypatch.setattr(
        costs.Recordings,
        "environment",
        lambda self: environment(self) | {"WATTWIRE_LAYERS_DIR": "/no/folder"},
    )
    (tmp_path / "off").mkdir()
    with pytest.raises(RuntimeError, match="found 0 processes with 1000 recorded events"):
        costs.event_times_ns(SimpleNamespace(folder=tmp_path / "off"), 2)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
def test_without_a_uprobe_the_reason_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WATTWIRE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(costs, "FUNCTION", "no_such_function")
    assert not list(costs.uprobe_comparisons(SimpleNamespace(folder=tmp_path), 2))
    output = capsys.readouterr().out
    assert "against a bpftrace uprobe: absent: " in output
    assert "bpftrace exited with " in output or "No such file or directory: 'bpftrace'" in output


def test_the_peak_of_memory_is_that_of_the_kernel():
    before = peak_mib(os.getpid())
    bytearray(os.urandom(1) * (300 << 20))
    peak = peak_mib(os.getpid())
    assert peak == resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 >= before


@pytest.mark.parametrize(
    ("slope", "half_width", "other_low", "other_high", "verdict"),
    [
        (1.01, 0.02, 0.0, 0.05, "passed"),
        (1.01, 0.02, 0.0, 0.2, "undecided"),
        (1.01, 0.02, 0.15, 0.2, "failed"),
        (1.01, 0.2, 0.0, 0.05, "undecided"),
        (1.1, 0.02, 0.0, 0.05, "failed"),
    ],
)
def test_a_delay_is_judged_by_limits(slope, half_width, other_low, other_high, verdict):
    assert Slopes("dds_write", 20, slope, half_width, other_low, other_high).verdict == verdict


def test_a_noisy_layer_without_a_slope_is_undecided():
    draw = np.random.default_rng(1)
    delays_ns = draw.uniform(2e5, 2e6, 20)
    shifts_ns = draw.normal(0, 1e3, (20, len(LAYERS)))
    names = [layer.name for layer in LAYERS]
    shifts_ns[:, names.index("dds_write")] += delays_ns
    assert delays.slopes("dds_write", delays_ns, shifts_ns).verdict == "passed"
    shifts_ns[:, names.index("executor")] *= 300
    slopes = delays.slopes("dds_write", delays_ns, shifts_ns)
    assert slopes.other_high > 0.1 and slopes.verdict == "undecided"
