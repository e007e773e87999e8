"""Expected statistics of a link's law, with their standard deviations.

Losses follow a hidden Markov chain, so frames are not independent. The variances are those of the
chain: the asymptotic covariance of means over a Markov chain, from its fundamental matrix (Kemeny
and Snell, Finite Markov Chains, 1960, theorem 4.6.1), and the delta method for a ratio.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

UNIFORM_KURTOSIS = 1.8
EXPONENTIAL_KURTOSIS = 9.0


@dataclass(frozen=True)
class Expected:
    """An expected value. Its estimate from n frames has the standard error `sd` / √n."""

    value: float
    sd: float

    def half_width(self, z: float, count: int) -> float:
        """Return half of the width of the interval at the quantile z, for `count` frames."""
        return z * self.sd / math.sqrt(count)

    def count_for(self, z: float, relative: float) -> int:
        """Return the number of frames for a half-width of `relative` times the value."""
        return math.ceil((z * self.sd / (relative * self.value)) ** 2)


@dataclass(frozen=True)
class LossStatistics:
    """The share of lost frames, and the mean length of a run of lost frames."""

    loss: Expected
    burst_frames: Expected
    bursts_per_frame: float


def loss_statistics(transitions: np.ndarray, losses: np.ndarray) -> LossStatistics:
    """Return the statistics of losses whose probabilities depend on a Markov chain's state.

    `transitions` has shape [states, states], and `losses` contains the probability of each state.
    A Bernoulli loss has one state. Requires a mean loss above 0 and below 1.
    """
    # The states (state, is lost, was lost) make runs of losses visible to the chain.
    count = len(losses)
    states = [(s, lost, was) for s in range(count) for lost in (0, 1) for was in (0, 1)]
    matrix = np.zeros((len(states), len(states)))
    for row, (s, lost, _) in enumerate(states):
        for column, (t, next_lost, was) in enumerate(states):
            if was == lost:
                chance = losses[t] if next_lost else 1 - losses[t]
                matrix[row, column] = transitions[s, t] * chance
    shares = _stationary(matrix)
    is_lost = np.array([float(lost) for _, lost, _ in states])
    begins = np.array([float(lost and not was) for _, lost, was in states])
    covariance = _asymptotic_covariance(matrix, shares, np.stack([is_lost, begins]))
    loss, bursts = float(shares @ is_lost), float(shares @ begins)
    gradient = np.array([1 / bursts, -loss / bursts**2])
    burst_variance = float(gradient @ covariance @ gradient)
    return LossStatistics(
        Expected(loss, math.sqrt(covariance[0, 0])),
        Expected(loss / bursts, math.sqrt(max(0.0, burst_variance))),
        bursts,
    )


def _stationary(matrix: np.ndarray) -> np.ndarray:
    count = len(matrix)
    system = np.vstack([matrix.T - np.eye(count), np.ones(count)])
    right = np.zeros(count + 1)
    right[-1] = 1.0
    solution: np.ndarray = np.linalg.lstsq(system, right, rcond=None)[0]
    return solution


def _asymptotic_covariance(
    matrix: np.ndarray, shares: np.ndarray, functions: np.ndarray
) -> np.ndarray:
    """Return n times the covariance of the means of `functions` over n steps (shape [k, k])."""
    count = len(matrix)
    fundamental = np.linalg.inv(np.eye(count) - matrix + np.outer(np.ones(count), shares))
    centred = functions - (functions @ shares)[:, None]
    solved = (fundamental @ centred.T).T
    cross = (centred * shares) @ solved.T
    covariance: np.ndarray = cross + cross.T - (centred * shares) @ centred.T
    return covariance


def jitter_mean(shape: str, scale: float) -> float:
    """Return the mean that jitter adds to the delay, in the unit of `scale`."""
    return 0.0 if shape == "uniform" else scale


def jitter_sd(shape: str, scale: float) -> Expected:
    """Return the standard deviation of jitter, in the unit of `scale`.

    The estimate's own deviation is that of a sample's standard deviation: σ √((κ − 1) / 4n).
    """
    sd = scale / math.sqrt(3) if shape == "uniform" else scale
    kurtosis = UNIFORM_KURTOSIS if shape == "uniform" else EXPONENTIAL_KURTOSIS
    return Expected(sd, sd * math.sqrt((kurtosis - 1) / 4))


def jitter_distribution(shape: str, scale: float, values: np.ndarray) -> np.ndarray:
    """Return the distribution function of jitter at `values`."""
    if shape == "uniform":
        clipped: np.ndarray = np.clip((values / scale + 1) / 2, 0.0, 1.0)
        return clipped
    tail: np.ndarray = 1 - np.exp(-np.maximum(values, 0.0) / scale)
    return tail
