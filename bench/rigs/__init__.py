"""Benchmarks of hosts and links, which need root."""
