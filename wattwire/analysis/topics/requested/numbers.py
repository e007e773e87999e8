"""Compute the tables and figures that a study requests.

The module `value_tables` has the tables, and `charts` has the figures.
"""

from __future__ import annotations

from dataclasses import dataclass

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.published_values import printed_of
from wattwire.analysis.topics.requested.charts import figure
from wattwire.analysis.topics.requested.drawings import RequestedFigure
from wattwire.analysis.topics.requested.value_tables import RequestedTable, requested_table


@dataclass(frozen=True)
class Requested:
    """The tables and figures that a study requests.

    `is_asked` states whether the study requests any, or a ranking or a break-even. Without a valid
    run there are no tables and figures. `has_published` states whether tables compare with
    published numbers, and `file` is the name of their file if the campaign lacks it. `source` is
    the DOI of the publication, if known.
    """

    is_asked: bool = False
    has_runs: bool = False
    has_published: bool = False
    file: str | None = None
    source: str = ""
    tables: tuple[RequestedTable, ...] = ()
    figures: tuple[RequestedFigure, ...] = ()


def requested(evidence: Evidence) -> Requested:
    """Return the requested tables and figures; none if no run is valid."""
    shown = evidence.study.shown
    is_asked = bool(shown.tables or shown.figures or shown.rankings or shown.break_evens)
    if not is_asked or evidence.usable.height == 0:
        return Requested(is_asked)
    printed = printed_of(evidence)
    return Requested(
        is_asked,
        True,
        bool(shown.published),
        None if printed.rows else evidence.study.published,
        evidence.study.source,
        tuple(requested_table(evidence, printed, spec) for spec in shown.tables),
        tuple(figure(evidence, spec) for spec in shown.figures),
    )
