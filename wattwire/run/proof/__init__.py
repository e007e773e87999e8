"""Prove the security of a treatment in a control run: uninvited nodes, and the fill on the link."""
