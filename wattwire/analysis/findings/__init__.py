"""Detect known causes of unusual latencies. report/findings formats the results as text."""
