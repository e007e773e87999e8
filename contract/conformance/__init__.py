"""One conformance suite for every cell: `run_suite` checks CONTRACT.md, clause by clause."""

from .cell import CLAUSES, CellUnderTest, ClauseResult, Problem, wire_of
from .suite import run_suite

__all__ = ["CLAUSES", "CellUnderTest", "ClauseResult", "Problem", "run_suite", "wire_of"]
