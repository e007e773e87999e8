"""One conformance suite for every cell: `run_suite` checks CONTRACT.md, clause by clause."""

from .cell import (
    CLAUSES,
    EXPIRED,
    OTHER_ADDRESS,
    OTHER_AUTHORITY,
    CellUnderTest,
    ClauseResult,
    Problem,
    Security,
    wire_of,
)
from .host import HERE, Place
from .suite import run_suite

__all__ = [
    "CLAUSES",
    "EXPIRED",
    "HERE",
    "OTHER_ADDRESS",
    "OTHER_AUTHORITY",
    "CellUnderTest",
    "ClauseResult",
    "Place",
    "Problem",
    "Security",
    "run_suite",
    "wire_of",
]
