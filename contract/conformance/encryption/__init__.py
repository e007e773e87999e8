"""Encrypting replies (C-40): a reference implementation of AES-128, and the scenario."""
