"""Flows that a study runs at the same time: their tables, levels and columns."""

from wattwire.model.flows.study_flows import (
    COLUMN,
    FLOW,
    FLOWS,
    FlowPart,
    FlowSpec,
    check_flows,
    check_name,
    check_settings_in_use,
    flow_levels,
    flow_parts,
    has_flow_of,
    names_in,
    parse_flows,
)

__all__ = [
    "COLUMN", "FLOW", "FLOWS", "FlowPart", "FlowSpec", "check_flows", "check_name",
    "check_settings_in_use", "flow_levels",
    "flow_parts", "has_flow_of", "names_in", "parse_flows",
]  # fmt: skip
