"""Generate the delivery traces of this folder: `python links/lte-driving/generate.py`.

The logarithm of the rate follows a mean-reverting random walk in steps of 100 ms, as fading and the
distance to the mast change it. At random times, a handover interrupts the link. Each line of a
trace is the time in ms at which the link can carry 1,500 bytes (Mahimahi's format).
"""

from __future__ import annotations

import math
import random
from pathlib import Path

DURATION_MS = 60_000
STEP_MS = 100
BITS = 1500 * 8
REVERSION = 0.04
"""Share of the distance to the mean that a step removes: a time constant of 2.5 s."""
STEP_SD = 0.18
"""Standard deviation of a step of the rate's logarithm."""
HANDOVER_EVERY_S = 15.0
HANDOVER_MS = (60, 250)
DIRECTIONS = {"up": (4.0, 20_261), "down": (9.0, 20_262)}
"""Name → median rate in Mbit/s, and seed."""


def delivery_times(median_mbit_s: float, seed: int) -> list[int]:
    """Return the times of the opportunities in ms, rising from 0 to DURATION_MS."""
    chance = random.Random(seed)
    deviation, credit_bits, gap_until_ms = 0.0, 0.0, 0
    times = []
    for now_ms in range(1, DURATION_MS):
        if now_ms % STEP_MS == 1:
            deviation += -REVERSION * deviation + chance.gauss(0.0, STEP_SD)
            if chance.random() < STEP_MS / 1000 / HANDOVER_EVERY_S:
                gap_until_ms = now_ms + chance.randint(*HANDOVER_MS)
        if now_ms < gap_until_ms:
            continue
        credit_bits += median_mbit_s * 1000 * math.exp(deviation)
        while credit_bits >= BITS:
            credit_bits -= BITS
            times.append(now_ms)
    return [*times, DURATION_MS]  # the last time is the period


def main() -> None:
    for name, (median_mbit_s, seed) in DIRECTIONS.items():
        times = delivery_times(median_mbit_s, seed)
        text = "".join(f"{time_ms}\n" for time_ms in times)
        (Path(__file__).parent / f"{name}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
