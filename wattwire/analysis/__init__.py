"""Compute the results of a campaign: its data, the answers to its questions, and each topic.

This package does not depend on any report.
"""
