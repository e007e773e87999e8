"""Flows that a study runs at the same time: their tables, levels and columns."""

from wattwire.model.flows.study_flows import (
    COLUMN,
    EXCLUDED_KEYS,
    FLOW,
    FLOWS,
    OWN_KEYS,
    PAYLOAD_BYTES,
    RATE_HZ,
    FlowPart,
    FlowSpec,
    check_name,
    flow_levels,
    flow_parts,
    has_flow_of,
    names_in,
    parse_flows,
)

__all__ = [
    "COLUMN", "EXCLUDED_KEYS", "FLOW", "FLOWS", "OWN_KEYS", "PAYLOAD_BYTES", "RATE_HZ", "FlowPart",
    "FlowSpec", "check_name", "flow_levels", "flow_parts", "has_flow_of", "names_in", "parse_flows",
]  # fmt: skip
