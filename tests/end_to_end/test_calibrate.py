"""Test that a planted cost of CPU time is recovered, and a missing counter reported."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.quiet

PLANTED = 1.5
QUICK = ("--blocks", "3", "--seconds", "0.5")


@pytest.fixture
def settings(tmp_path):
    return tmp_path / "settings"


def test_a_planted_cost_is_found_written_and_used(cli, settings):
    environment = {
        "XDG_CONFIG_HOME": str(settings),
        "WATTWIRE_FAKE_JOULES_PER_CPU_SECOND": str(PLANTED),
    }
    done = cli("calibrate", "--meter", "fake", *QUICK, **environment)
    if "other programs used" in done.err:
        assert done.code == 1 and not settings.exists()
        pytest.skip("this machine is too busy to be calibrated, and said so")
    assert done.code == 0, done.err
    assert "meters that now use it" in done.out
    file = settings / "wattwire" / "calibration.json"
    (entry,) = json.loads(file.read_text())["calibrations"]
    found = entry["joules_per_cpu_second"]
    assert found["low"] <= found["mean"] <= found["high"]
    # The two counters are read about 100 µs apart and advance in ticks of 10 ms.
    assert found["low"] * 0.97 <= PLANTED <= found["high"] * 1.03
    assert found["mean"] == pytest.approx(PLANTED, rel=0.1)
    assert entry["source"]["meter"] == "fake" and entry["facts"]["cpus"] >= 1
    loaded = [s for s in entry["steps"] if s["asked_cores"] == 0.5]
    assert len(loaded) == 3 and all(s["load_cores"] > 0.1 for s in loaded)


def test_a_counter_that_ignores_load_is_refused_and_nothing_is_written(cli, settings):
    done = cli("calibrate", "--meter", "fake", *QUICK, XDG_CONFIG_HOME=str(settings))
    assert done.code == 1
    assert "nothing was written" in done.err
    assert not settings.exists()


def test_without_a_counter_it_says_what_each_would_need(cli, settings):
    listed = cli("calibrate", *QUICK, XDG_CONFIG_HOME=str(settings))
    if listed.code != 3:
        pytest.skip("this machine has an energy counter")
    assert "no energy counter can be read here" in listed.err
    assert "powercap: " in listed.err and "battery_power: " in listed.err
    assert not settings.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--blocks", "2"), "--blocks: found 2; allowed: 3 or more"),
        (("--seconds", "nan"), "--seconds: found nan; allowed: 0.5 or more"),
        (("--meter", "fale"), 'Did you mean "fake"?'),
    ],
)
def test_what_cannot_be_is_refused_by_name(cli, arguments, words):
    done = cli("calibrate", *arguments)
    assert done.code == 2
    assert words in done.err


def test_a_file_that_is_not_ours_stays_as_it_is(cli, settings):
    file = settings / "wattwire" / "calibration.json"
    file.parent.mkdir(parents=True)
    file.write_text("not ours")
    done = cli(
        "calibrate", "--meter", "fake", *QUICK, XDG_CONFIG_HOME=str(settings),
        WATTWIRE_FAKE_JOULES_PER_CPU_SECOND=str(PLANTED),
    )  # fmt: skip
    assert done.code == 2 and str(file) in done.err
    assert file.read_text() == "not ours"
