"""A node without a kit that follows the contract except as specified by `settings.mode`."""

from __future__ import annotations

import json
import os
import struct
import sys
import time
from pathlib import Path
from typing import Any

import deeds

BEGAN_NS = time.monotonic_ns()
UNKNOWN_NS = -(2**63)
HEADER = "<8sHHHBBHHIQQQ16x"
RECORD = "<QqqqIHBB"


class Node:
    """The spec, and the values that a deed may change before they are written."""

    def __init__(self) -> None:
        words = sys.argv
        self.spec = json.loads(Path(words[words.index("--spec") + 1]).read_text())
        self.out = Path(words[words.index("--out") + 1])
        self.victim = Path(os.environ.get("HOSTILE_VICTIM", self.out))
        self.sends = self.spec["role"] == "publisher"
        self.deed = deeds.DEEDS[self.spec["settings.mode"]]
        self.acts = (self.deed.role == "publisher") == self.sends
        self.lines: dict[str, Any] = {}

    def say(self, keyword: str, **fields: Any) -> None:
        """Print one line, or the line with which the deed replaces it."""
        text = f"{keyword} {json.dumps(fields)}\n"
        if self.acts and keyword in self.deed.lines:
            wanted = self.deed.lines[keyword]
            text = wanted(self, fields) if callable(wanted) else wanted
        self.print(text)
        self.act(f"after {keyword}")

    def print(self, text: str) -> None:
        data = text.encode("utf-8", "surrogatepass")
        while data:
            data = data[os.write(3, data) :]

    def act(self, when: str) -> None:
        if self.acts and self.deed.when == when:
            self.deed.act(self)

    def run(self) -> None:
        self.act("at first")
        if not self.sends:
            self.say("LISTENING", endpoints=["hostile"])
        self.say(
            "READY", matched=None, startup_ns=time.monotonic_ns() - BEGAN_NS, discovery_ns=None,
            library={"name": "none", "version": "1", "build": "x"},
            effective={"mode": self.spec["settings.mode"]},
            guarantee={"delivery": "best_effort", "ordering": "none", "overload": "block"},
        )  # fmt: skip
        self.start_ns = int(sys.stdin.readline().split()[1])
        self.act("in the window")
        period_ns, phase_ns = self.spec["period_ns"], self.spec["phase_ns"]
        self.count = -((phase_ns - self.spec["duration_ns"]) // period_ns)
        due = [self.start_ns + phase_ns + k * period_ns for k in range(self.count)]
        if self.sends:
            self.sleep_until(due[-1] + 2_000_000)
            self.say(
                "SENT", begin_ns=due[0] + 1_000, end_ns=due[-1] + 2_000, sent=self.count,
                scheduled=self.count, skipped=0,
            )  # fmt: skip
        sys.stdin.readline()
        self.act("after STOP")
        records = [self.record(k, due[k]) for k in range(self.count)]
        now_ns = time.monotonic_ns()
        self.finish([record for record in records if record["end_ns"] < now_ns])

    def record(self, counter: int, due_ns: int) -> dict[str, int]:
        """Return the record of a publisher or subscriber for a message with a latency of 50 µs."""
        begin_ns = due_ns + 1_000
        node, other = self.spec["node"], self.spec["peers.nodes"][0]
        return {
            "seq": (node if self.sends else other) << 48 | counter,
            "intended_ns": due_ns if self.sends else UNKNOWN_NS,
            "begin_ns": begin_ns,
            "end_ns": begin_ns + (1_000 if self.sends else 50_000),
            "bytes": self.spec["payload.bytes"],
            "peer": other,
            "kind": 0,
            "flags": 0,
        }

    def sleep_until(self, at_ns: int) -> None:
        while (left_ns := at_ns - time.monotonic_ns()) > 0:
            time.sleep(left_ns / 1e9)

    def finish(self, records: list[dict[str, int]]) -> None:
        if self.acts and self.deed.records:
            records = self.deed.records(self, records)
        role = ("publisher", "subscriber").index(self.spec["role"])
        header: dict[str, Any] = {
            "magic": b"WATTWIRE", "version": 1, "header_bytes": 64, "record_bytes": 40,
            "role": role, "clock": 1, "node": self.spec["node"], "pad": 0, "pad2": 0,
            "count": len(records), "overflow": 0, "seed": self.spec["payload.seed"],
        }  # fmt: skip
        if self.acts:
            header.update(self.deed.header)
        data = struct.pack(HEADER, *header.values())
        data += b"".join(struct.pack(RECORD, *record.values()) for record in records)
        path = self.out / "samples.bin"
        if self.acts and self.deed.file:
            self.deed.file(self, path, data)
        else:
            path.write_bytes(data)
        count = len(records)
        self.say(
            "DONE", sent=count if self.sends else 0, received=0 if self.sends else count,
            recorded=count, overflow=0, foreign=0, corrupt=0, probes=0,
        )  # fmt: skip


if __name__ == "__main__":
    Node().run()
