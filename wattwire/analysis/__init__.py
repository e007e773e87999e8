"""Numerical analysis of a campaign: contrasts, control runs, stopping, warm-up.

It does not depend on any report.
"""
