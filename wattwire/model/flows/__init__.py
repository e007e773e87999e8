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
    Member,
    TopologyFlow,
    check_name,
    flow_levels,
    flow_parts,
    has_flow_of,
    names_in,
    parse_flows,
)
from wattwire.model.flows.topology import (
    TOPOLOGY,
    irobot_topology,
    is_irobot,
    parse_topology,
    plain_name,
)

__all__ = [
    "COLUMN", "EXCLUDED_KEYS", "FLOW", "FLOWS", "OWN_KEYS", "PAYLOAD_BYTES", "RATE_HZ",
    "TOPOLOGY", "FlowPart", "FlowSpec", "Member", "TopologyFlow", "check_name", "flow_levels",
    "flow_parts", "has_flow_of", "irobot_topology", "is_irobot", "names_in", "parse_flows",
    "parse_topology", "plain_name",
]  # fmt: skip
