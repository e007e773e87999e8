"""One conformance suite for every cell: `run_suite` checks CONTRACT.md, clause by clause."""

from .cell import CLAUSES, CellUnderTest, ClauseResult, Problem, wire_of
from .host import HERE, Place
from .suite import run_suite

__all__ = [
    "CLAUSES",
    "HERE",
    "CellUnderTest",
    "ClauseResult",
    "Place",
    "Problem",
    "run_suite",
    "wire_of",
]
