"""Levels of the factor `cores`, and the CPUs that each level gives to the processes of a run."""

from wattwire.model.cores.assignment import Assignment, CoresGapError, assign
from wattwire.model.cores.levels import ANY, APART, CORES, FREE, SAME, WORDS, checked, listed_cpus
from wattwire.model.cores.topology import Cpu, Machine, nearness

__all__ = [
    "ANY",
    "APART",
    "CORES",
    "FREE",
    "SAME",
    "WORDS",
    "Assignment",
    "CoresGapError",
    "Cpu",
    "Machine",
    "assign",
    "checked",
    "listed_cpus",
    "nearness",
]
