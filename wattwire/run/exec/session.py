"""`exec`: repeats of one measurement of a command or of a system that runs already."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wattwire import __version__
from wattwire.rig import AgentClient
from wattwire.run.exec.measure import OneExecution, Repeat, Request, attached_name
from wattwire.run.exec.results import ExecRows, describe_columns
from wattwire.run.private_places import private_places
from wattwire.run.progress import Progress
from wattwire.run.results.convert import quantities_frame
from wattwire.run.results.summary import HOST
from wattwire.store import Execution
from wattwire.store.files import write_table
from wattwire.store.redact import note_names


class Executor:
    """Measures a request into its folder. The caller reads the tables from there."""

    def __init__(self, folder: Path, request: Request, progress: Progress) -> None:
        self._request, self._progress = request, progress
        self.store = Execution.create(folder, _document(request))
        note_names(self.store.path, private_places(self.store.path, ()))
        self.interrupted = False
        self.last: Repeat | None = None

    def execute(self, show: Callable[[bytes], None]) -> None:
        """Run all repeats; Ctrl-C ends the one in flight, keeps it, and leaves out the rest."""
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
            what: dict[str, Any] = {"pid": target.pid}
            if target.cgroup is not None:
                what = {"cgroup": str(target.cgroup)}
            reply = agent.request("attach", process=attached_name(index), **what)
            if target.cgroup is not None and reply.get("usage") is None:
                text = (
                    f"{target.label}: its cgroup does not count CPU time; processes that end in "
                    "the window are counted up to the last look at them"
                )
                self._progress.event("note", text=text)

    def _repeat(self, agent: AgentClient, number: int, show: Callable[[bytes], None]) -> ExecRows:
        folder = self.store.open_repeat(number)
        one = OneExecution(agent, self._request, folder, show)
        repeat = self.last = one.execute()
        self.interrupted = repeat.ended_by == "Ctrl-C"
        readings = folder / "readings.bin"
        series = repeat.sampling.get("series", [])
        quantities = quantities_frame(f"{number:04}", HOST, readings, series)
        write_table(quantities, folder / "quantities.parquet")
        one.write_document()
        for raw in (readings, readings.with_name("readings.bin.json")):
            raw.unlink(missing_ok=True)
        rows = ExecRows(number, self._request, repeat, quantities, energy_model(agent))
        self.store.commit_repeat(number, folder)
        for text in repeat.notes:
            self._progress.event("note", text=text)
        return rows


def describe_machine(agent: AgentClient) -> dict[str, Any]:
    """machine.json: facts, meters, rights and versions, in a campaign's form."""
    hello = agent.hello
    return {
        "hosts": {
            HOST: {
                "facts": agent.request("fingerprint")["facts"],
                **{key: hello[key] for key in ("meters", "cgroup", "rights")},
            }
        },
        "versions": {
            "wattwire": __version__,
            "agent": hello["version"],
            "agent_build": hello["build"],
            "python": sys.version.split()[0],
        },
    }


def energy_model(agent: AgentClient) -> dict[str, float] | None:
    """The range of joules per CPU second that a present model states, if there is one."""
    keys = ("joules_per_cpu_second_low", "joules_per_cpu_second_high")
    for meter in agent.hello["meters"]:
        info: Mapping[str, Any] = meter.get("info") or {}
        if meter.get("state") == "present" and keys[0] in info:
            return {key: float(info[key]) for key in keys}
    return None


def _document(request: Request) -> dict[str, Any]:
    return {
        "command": list(request.command),
        "attached": [
            {"label": t.label, "pid": t.pid, "cgroup": str(t.cgroup) if t.cgroup else None}
            for t in request.targets
        ],
        "for_s": request.for_s,
        "repeats": request.repeats,
        "messages": request.messages,
        "count_from": request.count_from,
        "baseline_s": request.baseline_s,
        "tick_hz": request.tick_hz,
    }
