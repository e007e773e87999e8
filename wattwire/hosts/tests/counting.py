"""Count with a meter's counters on the hosts of a rig."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from wattwire.hosts import Host, Hosts
from wattwire.model.records import read_readings


def counting_meters(host: Host, quantity: str) -> list[str]:
    """Return the meters of a quantity."""
    meters = host.agent.hello["meters"]
    return [m["name"] for m in meters if any(q["name"] == quantity for q in m["quantities"])]


class Counting:
    """Reads a counter on all hosts while it is open.

    `increases` then maps (host, subject) to the increase.
    """

    def __init__(self, hosts: Hosts, folder: Path, quantity: str) -> None:
        self._hosts, self._folder, self._quantity = hosts.by_name, folder, quantity
        self.increases: dict[tuple[str, str], float] = {}

    def __enter__(self) -> Counting:
        for name, host in self._hosts.items():
            host.agent.request(
                "sample_start", path=str(self._folder / name), tick_hz=10,
                meters=counting_meters(host, self._quantity), subjects={},
            )  # fmt: skip
        return self

    def __exit__(self, *_exception: object) -> None:
        for name, host in self._hosts.items():
            reply = host.agent.request("sample_stop")
            values: dict[int, list[float]] = defaultdict(list)
            for reading in read_readings(self._folder / name):
                values[int(reading["series"])].append(float(reading["value"]))
            for series in reply["series"]:
                if series["quantity"] == self._quantity:
                    first, *_, last = values[series["series"]]
                    self.increases[name, series["subject"]] = last - first
