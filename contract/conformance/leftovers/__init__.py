"""Processes and files of nodes that their killed harness, or a kill of their own, leaves."""
