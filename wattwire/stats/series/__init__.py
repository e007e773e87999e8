"""One run's series: its percentiles, how dependent it is, whether it settles."""
