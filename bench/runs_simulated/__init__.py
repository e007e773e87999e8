"""Simulations of whole campaigns and of single runs."""
