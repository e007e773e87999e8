"""Analyse a campaign numerically: contrasts, control runs, stopping, warm-up.

This package does not depend on any report.
"""
