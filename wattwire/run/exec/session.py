"""Measure a command or a running system repeatedly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from wattwire.rig import AgentClient
from wattwire.run.exec.measure import OneExecution, Repeat, Request, attached_name
from wattwire.run.exec.results import ExecRows, describe_columns
from wattwire.run.machine import describe_machine, energy_model
from wattwire.run.private_places import private_places
from wattwire.run.progress import Progress
from wattwire.run.results.convert import quantities_frame
from wattwire.store import Execution
from wattwire.store.files import write_table
from wattwire.store.redact import note_names


class Executor:
    """Measurement of a request, with its tables in a folder."""

    def __init__(self, folder: Path, request: Request, progress: Progress) -> None:
        self._request, self._progress = request, progress
        self.store = Execution.create(folder, _document(request))
        note_names(self.store.path, private_places(self.store.path, ()))
        self.interrupted = False
        self.last: Repeat | None = None

    def execute(self, show: Callable[[bytes], None]) -> None:
        """Run all repeats. Ctrl-C ends and saves the current repeat and skips the others."""
        agent = AgentClient(self.store.path / "agent")
        processes: list[dict[str, Any]] = []
        repeats: list[dict[str, Any]] = []
        try:
            self.store.write_json("machine.json", describe_machine(agent))
            self._attach(agent)
            for number in range(1, self._request.repeats + 1):
                self._progress.event("repeat", repeat=number, repeats=self._request.repeats)
                rows = self._repeat(agent, number, show)
                processes += rows.processes
                repeats.append(rows.summary)
                if self.interrupted:
                    break
        finally:
            agent.close()
            if repeats:
                self.store.write_tables(processes, repeats, describe_columns())

    def _attach(self, agent: AgentClient) -> None:
        for index, target in enumerate(self._request.targets):
            identity: dict[str, Any] = {"pid": target.pid}
            if target.cgroup is not None:
                identity = {"cgroup": str(target.cgroup)}
            reply = agent.request("attach", process=attached_name(index), **identity)
            if target.cgroup is not None and reply.get("usage") is None:
                text = (
                    f"{target.label}: its cgroup does not count CPU time, so the CPU time of a "
                    "process that ends in the window is counted up to its last scan"
                )
                self._progress.event("note", text=text)

    def _repeat(self, agent: AgentClient, number: int, show: Callable[[bytes], None]) -> ExecRows:
        folder = self.store.open_repeat(number)
        execution = OneExecution(agent, self._request, folder, show)
        repeat = self.last = execution.execute()
        self.interrupted = repeat.ended_by == "Ctrl-C"
        readings = folder / "readings.bin"
        series = repeat.sampling.get("series", [])
        quantities = quantities_frame(f"{number:04}", self._request.deployment, readings, series)
        write_table(quantities, folder / "quantities.parquet")
        execution.write_document()
        for path in (readings, readings.with_name("readings.bin.json")):
            path.unlink(missing_ok=True)
        rows = ExecRows(number, self._request, repeat, quantities, energy_model(agent))
        self.store.commit_repeat(number, folder)
        for text in repeat.notes:
            self._progress.event("note", text=text)
        return rows


def _document(request: Request) -> dict[str, Any]:
    return {
        "command": list(request.command),
        "attached": [
            {
                "label": target.label,
                "pid": target.pid,
                "cgroup": str(target.cgroup) if target.cgroup else None,
            }
            for target in request.targets
        ],
        "for_s": request.for_s,
        "repeats": request.repeats,
        "messages": request.messages,
        "count_from": request.count_from,
        "baseline_s": request.baseline_s,
        "tick_hz": request.tick_hz,
    }
