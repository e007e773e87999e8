"""Compute what uninvited nodes received, and whether payloads were on the link in plain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wattwire.rig.emulator_log import read_log
from wattwire.run.proof.fill import PIECE_BYTES, fill_of, search
from wattwire.store.files import discard

RECEIVED, DELIVERED, FILL = "uninvited_received", "uninvited_delivered", "fill_on_link"
"""Columns of the result in the summary."""


@dataclass(frozen=True)
class Proof:
    """`columns` are for the summary, `document` is for run.json; an absent number has a reason."""

    columns: dict[str, int | None]
    document: dict[str, Any]


def proof_of(
    uninvited: Sequence[Mapping[str, Any]],
    foreign: int,
    capture: Path | None,
    log: Path | None,
    specs: Sequence[Mapping[str, Any]],
) -> Proof:
    """Return the result, and delete the capture, which would fill the disk.

    `foreign` is the number of messages that the run's nodes received and that are of no node of
    the run, and `specs` are those of the nodes of the run. `log` is that of the emulator. It has
    all frames, and the capture only those until it is full.
    """
    received = [node["received"] for node in uninvited if node["tried"]]
    known = sum(filter(None, received))
    frames, absent = None, ""
    fills = list(dict.fromkeys(fill for s in specs if len(fill := fill_of(s)) >= PIECE_BYTES))
    searched = unsearched = 0
    if capture is None or not capture.is_file():
        absent = "no link emulator joins the hosts, so no frames are kept"
    elif not fills:
        absent = f"no payload has {PIECE_BYTES} bytes of fill"
    else:
        with capture.open("rb") as file:
            searched, frames = search(file, fills)
        unsearched = 0 if log is None else max(0, _frames_in(log) - searched)
    if capture is not None and capture.is_file():
        discard(capture)
    columns = {
        # Known messages are a leak, even if other nodes did not tell what they received.
        RECEIVED: known if known or (received and None not in received) else None,
        DELIVERED: foreign,
        FILL: frames,
    }
    return Proof(
        columns,
        {
            "uninvited": list(uninvited),
            "frames_searched": searched,
            "frames_unsearched": unsearched,
            **({"fill_absent": absent} if absent else {}),
        },
    )


def _frames_in(log: Path) -> int:
    """Return the number of frames in the emulator's log, which has a record per receiver."""
    return len(np.unique(read_log(log)[["in_ns", "source"]]))
