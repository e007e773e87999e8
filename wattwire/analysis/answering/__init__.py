"""Compute the contrasts of the answers: baselines, models, intervals and contradicting levels."""
