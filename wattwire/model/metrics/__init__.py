"""Register the metrics of runs, and find them by their names.

A metric of a run is a column of the summary. A metric of a node has a column per node,
`NAME.ROLE.INDEX`, and per service process, `NAME.SERVICE`. A metric of a counter has a column per
counter of a service, `NAME.SERVICE.COUNTER`. In a study with flows, the metrics in `OF_FLOWS` also
have a column per flow, `NAME.flow.FLOW`.
"""

from wattwire.model.metrics.metric import (
    COMPARED,
    COUNTER,
    ENERGY,
    EVIDENCE,
    FIGURES,
    HARNESS,
    HIGHER,
    HIGHEST,
    LOWER,
    MEAN,
    NODE,
    OFFERED,
    PRINTED,
    SENT_RECORDS,
    SUM,
    SYSTEM_CALLS,
    SYSTEM_CALLS_COUNTED,
    WORST,
    Metric,
)
from wattwire.model.metrics.names import check_name, check_response, find, suggestion
from wattwire.model.metrics.printed_figures import direction_of, is_printed, printed
from wattwire.model.metrics.registry import (
    METRICS,
    OF_FLOWS,
    PROCESS_COLUMNS,
    combined_by,
    metrics_in,
)

__all__ = [
    "COMPARED", "COUNTER", "ENERGY", "EVIDENCE", "FIGURES", "HARNESS", "HIGHER",
    "HIGHEST", "LOWER", "MEAN", "METRICS", "NODE", "OFFERED", "OF_FLOWS", "PRINTED",
    "PROCESS_COLUMNS", "SENT_RECORDS", "SUM", "SYSTEM_CALLS", "SYSTEM_CALLS_COUNTED", "WORST",
    "Metric", "check_name", "check_response", "combined_by", "direction_of", "find", "is_printed",
    "metrics_in", "printed", "suggestion",
]  # fmt: skip
