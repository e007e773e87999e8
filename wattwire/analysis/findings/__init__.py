"""Detectors of known causes of unusual latencies: numbers only, put in words by report/findings."""
