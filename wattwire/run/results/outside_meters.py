"""Say which meters outside the machine a sampling could not read.

A run without its meter is not comparable with the others. The sentences contain no address.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wattwire.model.outside_meters import OutsideMeter

NOTHING = "nothing came"


def absent_meters(reply: Mapping[str, Any], meters: Mapping[str, OutsideMeter]) -> Iterator[str]:
    """Yield a sentence for each meter that a sampling could not open.

    `reply` is that of `sample_start`, and `meters` maps the names to the meters of its host.
    """
    for absent in reply["absent"]:
        if meter := meters.get(absent["name"]):
            reason = absent["reason"]
            for word in meter.private_words:
                reason = reason.replace(word, "its address")
            yield f"the meter {meter.name} is gone: {reason}"


def silent_meters(sampling: Mapping[str, Any], meters: Mapping[str, OutsideMeter]) -> Iterator[str]:
    """Yield a sentence for each meter that did not answer at the end of a sampling, or never."""
    infos = {series["meter"]: series["info"] for series in sampling["series"]}
    for name in meters.keys() & infos.keys():
        info = infos[name]
        text = info.get("open_fault", "")
        if not text and not info["answers"]:
            text = next(iter(info.get("fault_texts", {})), NOTHING)
        if text:
            yield f"the meter {name} does not answer: {text}"
