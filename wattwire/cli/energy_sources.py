"""Describe the sources of a machine's energy, and how to get one where there is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wattwire.model.outside_meters import STREAM

BOARDS = (
    ("NVIDIA Jetson", "its INA3221 measures the rail that feeds the board"),
    (
        "Raspberry Pi 5",
        "its power chip measures rails (vcgencmd pmic_read_adc), but not the current of the 5 V "
        "input, so they are parts and no source of energy",
    ),
    ("Raspberry Pi", "it has no sensor of its power"),
)
"""Beginning of a board's name, and what the board can measure. The first match applies."""
AT_THE_SOCKET = "measure at the socket of its power supply with a meter outside the machine"
WIRING = (
    f"{AT_THE_SOCKET}. Or put an INA226 or INA238 with a shunt of 10 mΩ into the 5 V line, connect "
    "it to the I²C bus (SDA, SCL, ground), load its driver (echo ina238 0x40 | sudo tee "
    "/sys/bus/i2c/devices/i2c-1/new_device), and state that it feeds the board"
)
VIRTUAL = (
    f"a virtual machine has no counters unless its host passes them on: {AT_THE_SOCKET} of its host"
)

Line = tuple[str, str, str]
"""Name, state ("ok", "missing" or "note") and text of a line of `doctor`."""


def energy_lines(meters: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> Iterator[Line]:
    """Yield lines on the board, its preferred source of energy, and the meters outside of it.

    The title of a meter that only one board has begins with the name of the board and a colon.
    """
    board = str(facts.get("board", ""))
    board_text = next((text for name, text in BOARDS if board.startswith(name)), "")
    if board:
        own = [m["name"] for m in meters if board.startswith(m["title"].split(":")[0])]
        texts = [f": {board_text}" if board_text else "", f"; its meter: {own[0]}" if own else ""]
        yield "board", "ok", board + "".join(texts)
    source = preferred_source(meters)
    if source is not None:
        meter, quantity = source
        summary = quantity.get("summary", meter["title"])
        yield "source", "ok", f"{meter['name']} measures energy here: {summary}"
    else:
        virtual = facts.get("virtualisation", "none") != "none"
        remedy = VIRTUAL if virtual else WIRING if board_text else AT_THE_SOCKET
        yield "source", "missing", f"nothing here measures energy; {remedy}"
    for meter in meters:
        if meter.get("tier") == STREAM:
            yield meter["name"], "note", f"{meter['title']}: {meter['reason']}"


def preferred_source(
    meters: Sequence[Mapping[str, Any]],
) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """Return the readable meter and its quantity of the lowest rank, or None."""
    ranked = [
        (quantity["rank"], meter, quantity)
        for meter in meters
        for quantity in meter["quantities"]
        if meter["state"] == "present" and meter.get("default") and quantity.get("rank") is not None
    ]
    if not ranked:
        return None
    _, meter, quantity = min(ranked, key=lambda entry: entry[0])
    return meter, quantity
