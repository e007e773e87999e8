"""Compute what uninvited nodes received, and whether payloads were on the link in plain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wattwire.run.proof.fill import PIECE_BYTES, fill_of, frames_of, frames_with_fill
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
    specs: Sequence[Mapping[str, Any]],
) -> Proof:
    """Return the result, and delete the capture, which would fill the disk.

    `foreign` is the number of messages that the run's nodes received and that are of no node of
    the run, and `specs` are those of the nodes of the run.
    """
    received = [node["received"] for node in uninvited if node["tried"]]
    known = sum(filter(None, received))
    frames, absent = None, ""
    fills = list(dict.fromkeys(fill for s in specs if len(fill := fill_of(s)) >= PIECE_BYTES))
    searched = 0
    if capture is None or not capture.is_file():
        absent = "no link emulator joins the hosts, so no frames are kept"
    elif not fills:
        absent = f"no payload has {PIECE_BYTES} bytes of fill"
    else:
        content = capture.read_bytes()
        searched = sum(1 for _ in frames_of(content))
        frames = frames_with_fill(content, fills)
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
            **({"fill_absent": absent} if absent else {}),
        },
    )
