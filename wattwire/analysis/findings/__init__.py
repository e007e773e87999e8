"""Detect known causes of unusual latencies; report/findings phrases the results."""
