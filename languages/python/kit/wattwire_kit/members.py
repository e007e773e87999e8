"""Members of a topology (C-41): a process with several publishers and subscribers, its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .core import NAP_NS, Message, Poll, SendFailed
from .dialogue import Dialogue
from .events import EventSender
from .spec import part_specs

Part = TypeVar("Part", bound="Members")


class Members(EventSender):
    """A node with parts. Each part is a kit of its own, with the spec of its part.

    The node prints the lines, and each part has a sample file.
    """

    def __init__(
        self, spec: Mapping[str, Any], dialogue: Dialogue, process_start_ns: int, out: str = ""
    ) -> None:
        super().__init__(spec, dialogue, process_start_ns, out)
        self.parts = [type(self)(own, dialogue, process_start_ns, out) for own in part_specs(spec)]

    @property
    def publishers(self: Part) -> list[Part]:
        return [part for part in self.parts if part._is_sender]

    @property
    def subscribers(self: Part) -> list[Part]:
        return [part for part in self.parts if not part._is_sender]

    def entry(self, matched: int | None, effective: Mapping[str, Any]) -> dict[str, Any]:
        """Return the entry of this part in READY (C-42)."""
        effective = {**self._settings(), **effective}
        return {"node": self.spec["node"], "matched": matched, "effective": effective}

    def drive_parts(self: Part, send: Callable[[Part, Message], object], poll: Poll) -> None:
        """Call `send(part, buffer)` for each message when it is due, and `poll` until the end."""
        self.wait_go(poll)
        publishers = self.publishers
        for part in publishers:
            part._learn_start()
        while self._send_due(publishers, send, poll):
            pass
        self._print_sent(publishers)
        self.poll(poll)

    def _send_due(
        self: Part, publishers: list[Part], send: Callable[[Part, Message], object], poll: Poll
    ) -> bool:
        """Send what is due and poll until the next message; return False if none follows."""
        wait_s, has_more = NAP_NS / 1e9, False
        for part in publishers:
            if part.finished():
                continue
            has_more = True
            slot = part.tick()
            if slot is not None:
                try:
                    send(part, part.begin(slot))
                except (SendFailed, OSError):
                    part.fail(slot)
                else:
                    part.complete(slot)
            wait_s = min(wait_s, part.wait_s())
        if has_more:
            poll(wait_s)
        return has_more

    def _print_sent(self: Part, publishers: list[Part]) -> None:
        """Print SENT with an entry for each publisher; without publishers, print nothing."""
        if not publishers:
            return
        entries = [{"node": part.spec["node"], **part._sent_fields()} for part in publishers]
        begins_ns = [entry["begin_ns"] for entry in entries if entry["begin_ns"] is not None]
        ends_ns = [entry["end_ns"] for entry in entries if entry["end_ns"] is not None]
        totals = {key: sum(e[key] for e in entries) for key in ("sent", "scheduled", "skipped")}
        times = {
            "begin_ns": min(begins_ns, default=None),
            "end_ns": max(ends_ns, default=None),
        }
        self._dialogue.line("SENT", {**times, **totals, "parts": entries})

    def _last_arrival_ns(self) -> int:
        return max((part._arrival_ns for part in self.parts), default=self._arrival_ns)

    def finish(self) -> None:
        """Write the samples and print DONE; a member has both for each of its parts."""
        if not self.parts:
            super().finish()
            return
        counts = [part._write(f"samples-{part.spec['node']}.bin") for part in self.parts]
        totals = {key: sum(count[key] for count in counts) for key in counts[0]}
        nodes = [part.spec["node"] for part in self.parts]
        entries = [{"node": node, **count} for node, count in zip(nodes, counts, strict=True)]
        self._dialogue.line("DONE", {**totals, "parts": entries})
