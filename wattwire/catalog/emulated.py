"""Check the table [emulated] of a cell, which describes the device that an emulator executes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from wattwire.model.errors import UsageError

ALLOWED = {
    "device": 'the name of the device, as "Arm Cortex-M3 on MPS2 AN385"',
    "clock_hz": "the frequency of the device's clock in Hz, above 0",
    "cycles_per_instruction": "two numbers above 0, the lower one first, as [0.5, 3.0]",
}
"""Key of the table → its allowed values."""
CLOCK = ("clock_hz", "cycles_per_instruction")
"""The keys of an estimate. A machine that exists only in an emulator has no clock, and neither."""


def check_emulated(where: str, table: Mapping[str, Any]) -> None:
    """Raise UsageError for a missing key or an invalid value. `where` names the manifest."""
    clock_hz, cycles = table.get("clock_hz", 0.0), table.get("cycles_per_instruction", [])
    is_valid = {
        "device": bool(table.get("device")),
        "clock_hz": 0 < clock_hz < math.inf,
        "cycles_per_instruction": len(cycles) == 2 and 0 < cycles[0] <= cycles[1] < math.inf,
    }
    has_clock = any(key in table for key in CLOCK)
    for key, valid in is_valid.items():
        if not valid and (has_clock or key not in CLOCK):
            value = repr(table[key]) if key in table else "nothing"
            raise UsageError(f"{where}: emulated: {key}: found {value}; allowed: {ALLOWED[key]}")
