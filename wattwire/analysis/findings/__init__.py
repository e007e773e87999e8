"""Detectors of known causes of unusual latencies; report/findings puts their numbers into words."""
