"""Test bounds of a clock's offset with planted clocks, delays, asymmetries, changes and steps."""

import numpy as np
import pytest

from wattwire import stats

START_NS, WINDOW_S = 5_000_000_000_000, 30.0
RATE_MAX = 500e-6
EDGE = 64
MARGINS = (EDGE - 1, EDGE - 1)


def veth(rng):
    return 13_000 + rng.exponential(10_000)


def slow(rng):
    return 5e6 + rng.uniform(-1e6, 1e6)


class Plant:
    """A clock with an offset, a rate, and a change of the rate and a step in 30 s."""

    def __init__(self, seed, change_ppm=0.0, step_ns=0.0, changes_at_s=WINDOW_S / 2):
        self.rng = np.random.default_rng(seed)
        self._offset_ns = round(self.rng.uniform(-1e12, 1e12))
        self._rate = self.rng.uniform(-50e-6, 50e-6)
        self._change, self._step_ns = change_ppm * 1e-6, step_ns
        self._changes_at_s = changes_at_s

    def offset_ns(self, controller_ns):
        since_ns = controller_ns - START_NS
        later_ns = max(0.0, since_ns - self._changes_at_s * 1e9)
        drift_ns = since_ns * self._rate + later_ns * self._change
        return self._offset_ns + round(drift_ns + (self._step_ns if later_ns else 0.0))

    def exchanges(self, there=veth, back=veth, period_s=0.25, load_ns=0):
        """Return the exchanges before, in (none for a period of 0) and after 30 s.

        In these 30 s, `load_ns` delays each direction.
        """
        rows, at_ns = [], START_NS

        def exchange(at_ns, load_ns=0):
            arrived_ns = at_ns + round(there(self.rng)) + load_ns
            received_ns = arrived_ns + 3_000 + round(back(self.rng)) + load_ns
            host_ns = [ns + self.offset_ns(ns) for ns in (arrived_ns, arrived_ns + 3_000)]
            rows.append((at_ns, *host_ns, received_ns))
            return received_ns + 10_000

        for _ in range(EDGE):
            at_ns = exchange(at_ns)
        for number in range(1, round(WINDOW_S / period_s)) if period_s else ():
            at_ns = exchange(max(at_ns, START_NS + round(number * period_s * 1e9)), load_ns)
        at_ns = max(at_ns, START_NS + round(WINDOW_S * 1e9))
        for _ in range(EDGE):
            at_ns = exchange(at_ns)
        return np.array(rows, dtype=np.int64)

    def errors_ns(self, lines, times_ns):
        """Return how far the lines are from the truth, and their band, at times."""
        offsets_ns, bands_ns = lines.at(times_ns)
        truth_ns = np.array([self.offset_ns(int(ns)) - self._offset_ns for ns in times_ns])
        return np.abs(offsets_ns - self._offset_ns - truth_ns), bands_ns


@pytest.mark.parametrize("margin", [0, EDGE - 1])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("there", "back"), [(veth, veth), (slow, slow), (veth, slow)])
def test_the_truth_is_inside_the_band_at_every_exchange(seed, there, back, margin):
    plant = Plant(seed)
    exchanges = plant.exchanges(there, back)
    lines = stats.clock_lines(exchanges, RATE_MAX, 0.0, (margin, margin))
    assert len(lines.times_ns) == 2
    errors_ns, bands_ns = plant.errors_ns(lines, exchanges[:, 0])
    assert (errors_ns <= bands_ns + 1e-3).all()
    half_ns = ((exchanges[:, 3] - exchanges[:, 0]) - 3_000).min() / 2
    assert max(lines.bands_ns) <= half_ns * (1.1 if margin else 1.4)


def test_an_asymmetry_moves_the_offset_by_half_and_stays_inside():
    plant = Plant(1)
    exchanges = plant.exchanges(lambda _: 20e6, lambda _: 5e6)
    lines = stats.clock_lines(exchanges, RATE_MAX)
    errors_ns, bands_ns = plant.errors_ns(lines, exchanges[EDGE:-EDGE, 0])
    assert np.median(errors_ns) == pytest.approx(7.5e6, rel=0.02)
    assert (errors_ns < bands_ns).all() and np.median(bands_ns) == pytest.approx(12.5e6, rel=0.02)


@pytest.mark.parametrize("seed", range(5))
def test_a_change_of_the_rate_needs_two_lines_and_both_hold_the_truth(seed):
    plant = Plant(seed, change_ppm=20.0)
    exchanges = plant.exchanges()
    lines = stats.clock_lines(exchanges, RATE_MAX, 2e-6, MARGINS)
    assert len(lines.times_ns) == 3
    rates = np.diff(lines.offsets_ns) / np.diff(lines.times_ns)
    assert rates[1] - rates[0] == pytest.approx(20e-6, abs=4e-6)
    assert (lines.times_ns[1] - START_NS) / 1e9 == pytest.approx(15.0, abs=1.5)
    errors_ns, bands_ns = plant.errors_ns(lines, exchanges[:, 0])
    assert (errors_ns <= bands_ns).all()


def instants(exchanges):
    """Return times (ns) all over the run, which are not only those of exchanges."""
    return np.linspace(exchanges[EDGE - 1, 0], exchanges[-EDGE, 3], 4_001).astype(np.int64)


@pytest.mark.parametrize("change_ppm", [-900.0, 100.0, 400.0])
@pytest.mark.parametrize("at", [15.0, 15.12, None])
def test_a_change_at_any_time_is_one_change_and_the_truth_is_inside_at_every_instant(
    change_ppm, at
):
    for seed in range(10):
        changes_at_s = at or np.random.default_rng(seed).uniform(3, 27)
        plant = Plant(seed, change_ppm, changes_at_s=changes_at_s)
        plant._rate = -change_ppm * 1e-6 / 2
        exchanges = plant.exchanges()
        lines = stats.clock_lines(exchanges, RATE_MAX, 2e-6, MARGINS)
        assert len(lines.times_ns) == 3
        assert (lines.times_ns[1] - START_NS) / 1e9 == pytest.approx(changes_at_s, abs=0.8)
        errors_ns, bands_ns = plant.errors_ns(lines, instants(exchanges))
        assert (errors_ns <= bands_ns).all()


@pytest.mark.parametrize(
    ("there", "back", "load_ns"),
    [(lambda _: 16_000, lambda _: 100, 0), (veth, veth, 0), (veth, veth, 200_000)],
)
def test_the_room_for_a_hidden_change_holds_it(there, back, load_ns):
    for seed in range(10):
        plant = Plant(seed, change_ppm=2.0)
        exchanges = plant.exchanges(there, back, load_ns=load_ns)
        lines = stats.clock_lines(exchanges, RATE_MAX, 2e-6, MARGINS)
        errors_ns, bands_ns = plant.errors_ns(lines, instants(exchanges))
        assert (errors_ns <= bands_ns).all()


def test_a_change_near_an_end_leaves_lines_on_both_sides():
    plant = Plant(3, 400.0, changes_at_s=0.001)
    exchanges = plant.exchanges()
    lines = stats.clock_lines(exchanges, RATE_MAX, 2e-6, MARGINS)
    assert (np.diff(lines.times_ns) > 0).all()
    errors_ns, bands_ns = plant.errors_ns(lines, instants(exchanges))
    assert (errors_ns <= bands_ns).all()


def test_a_change_that_delays_hide_is_not_seen_and_its_size_is_known():
    hidden = stats.clock_lines(Plant(1, change_ppm=20.0).exchanges(slow, slow), RATE_MAX)
    assert len(hidden.times_ns) == 2 and 500e-6 < hidden.unseen_rate < 2_000e-6
    seen = stats.clock_lines(Plant(1).exchanges(), RATE_MAX)
    assert seen.unseen_rate < 10e-6
    for factor, lines in ((0.5, 2), (1.5, 3)):
        change_ppm = 1e6 * seen.unseen_rate * factor
        found = stats.clock_lines(Plant(2, change_ppm).exchanges(), RATE_MAX)
        assert len(found.times_ns) == lines
    assert stats.clock_lines(Plant(1).exchanges(period_s=0), RATE_MAX).unseen_rate is None


@pytest.mark.parametrize("step_ns", [-1e9, 1e9, 2e6])
@pytest.mark.parametrize("period_s", [0.25, 0])
def test_a_clock_that_is_set_is_a_step(step_ns, period_s):
    step_ns *= 100 if not period_s else 1  # without exchanges in the run, a rate explains less
    step = stats.clock_lines(Plant(3, step_ns=step_ns).exchanges(period_s=period_s), RATE_MAX)
    assert isinstance(step, stats.ClockStep)
    expected_ns = step_ns + (30e9 if not period_s else 0.25e9) * 50e-6 * np.sign(step_ns)
    assert step.step_ns == pytest.approx(expected_ns, abs=3.1e6)


def test_the_departure_shows_what_load_did_to_one_direction():
    calm = stats.clock_lines(Plant(4).exchanges(), RATE_MAX)
    late = iter(range(10**6))

    def loaded(rng):  # 2 ms more between the 40th and the 70th exchange of the window
        return veth(rng) + (2e6 if EDGE + 40 <= next(late) < EDGE + 70 else 0)

    disturbed = stats.clock_lines(Plant(4).exchanges(loaded), RATE_MAX)
    assert calm.departure_ns < 20_000
    assert disturbed.departure_ns == pytest.approx(1e6, rel=0.05)


def test_the_band_has_room_for_a_change_that_stays_hidden_but_not_for_more_than_is_possible():
    exchanges = Plant(5).exchanges()
    tight, wide, wider = (
        stats.clock_lines(exchanges, RATE_MAX, change) for change in (0.0, 2e-6, 1.0)
    )
    # The room of d·T/8 is on both sides of the bounds, and once more around the lines.
    room_ns = 2e-6 * 30e9 / 8
    assert 2 * room_ns <= wide.bands_ns[0] - tight.bands_ns[0] + 2 <= 4 * room_ns
    assert tight.bands_ns[0] < wide.bands_ns[0] < wider.bands_ns[0]
    assert wider.bands_ns[0] == stats.clock_lines(exchanges, RATE_MAX, 0.5).bands_ns[0]


def test_few_exchanges_give_an_offset_without_a_rate():
    plant = Plant(6)
    offset = stats.clock_offset(plant.exchanges()[:EDGE], RATE_MAX)
    ((time_ns,), (offset_ns,), (band_ns,)) = offset.times_ns, offset.offsets_ns, offset.bands_ns
    assert abs(offset_ns - plant.offset_ns(time_ns)) <= band_ns < 40_000


def test_impossible_arguments_are_refused():
    exchanges = Plant(7).exchanges()
    with pytest.raises(ValueError, match=r"found 1; allowed: 2"):
        stats.clock_lines(exchanges[:1], RATE_MAX)
    with pytest.raises(ValueError, match=r"found the shape \(0, 4\)"):
        stats.clock_lines(exchanges[:0], RATE_MAX)
