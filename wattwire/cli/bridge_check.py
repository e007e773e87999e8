"""Check bridges: a round trip between two namespaces, and the faults of each of its hops."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wattwire.analysis.topics.hops.faults import HopFaults, hop_faults
from wattwire.catalog import Bridge, Catalog
from wattwire.cli.screen import make_progress
from wattwire.cli.verbs import run as campaigns
from wattwire.cli.wrap import searchable
from wattwire.model.deployment import (
    PIPELINE,
    RECEIVER,
    RELAY,
    SENDER,
    Deployment,
    deployment_of_run,
)
from wattwire.model.errors import MissingError
from wattwire.model.hosts.bridging import FACTOR
from wattwire.model.rig.rig import ANY_SERVICE, NETNS
from wattwire.model.study import RIG
from wattwire.model.treatment import OUTER_SETTING, Level
from wattwire.model.verdict import Outcome, Verdict
from wattwire.model.words import as_typed, plural
from wattwire.rig.namespaces import require_namespaces
from wattwire.store import Campaign

NAMES_MAX = 8
"""Maximum number of messages of a fault that the output names."""
NEAR, FAR = "near", "far"


@dataclass(frozen=True)
class Checked:
    """The result of the check of a bridge. `problem` is set if the run did not complete."""

    messages: int
    hops: list[HopFaults]
    deployment: Deployment
    problem: str = ""

    @property
    def failures(self) -> list[str]:
        """Return a text for each fault, with its hop and its messages."""
        names = {node.node: node.process for node in self.deployment.nodes}
        texts = [self.problem] if self.problem else []
        for hop in self.hops:
            for kind, counters in hop.faults.items():
                listed = ", ".join(map(str, sorted(counters)[:NAMES_MAX]))
                more = ", …" if len(counters) > NAMES_MAX else ""
                texts.append(
                    f"hop {hop.hop} to {names[hop.node]}: {plural(len(counters), 'message')} "
                    f"{kind}: {listed}{more}"
                )
        return texts


def check_bridges(names: Sequence[str], catalog: Catalog) -> int:
    """Check bridges and return the number of failures.

    Raises MissingError without the permission for namespaces, or if no bridge can run here.
    """
    require_namespaces()
    failed, absent = 0, list[str]()
    to_check = [(name, outer) for name in names for outer in outer_levels(catalog.bridge(name))]
    for name, outer in to_check:
        levels = [f"{OUTER_SETTING}{key}={as_typed(level)}" for key, level in outer.items()]
        title = " ".join([name, *levels])
        try:
            checked = check_bridge(catalog.bridge(name, outer), catalog)
        except MissingError as reason:
            absent.append(title)
            print(searchable(f"{title}: absent: {reason}", sys.stdout), flush=True)
            continue
        failed += len(checked.failures)
        for text in checked.failures:
            print(searchable(f"failed  {text}", sys.stdout, "  ", " " * 10))
        print(
            f"{title}: {plural(checked.messages, 'message')} over {len(checked.hops)} hops, "
            f"{plural(len(checked.failures), 'failure')}",
            flush=True,
        )
    if len(absent) == len(to_check):
        raise MissingError(f"nothing was checked: {', '.join(absent)} cannot run here")
    print(f"{plural(failed, 'check')} failed" if failed else "every check passes")
    return failed


def outer_levels(bridge: Bridge) -> list[dict[str, Level]]:
    """Return the outer settings to check: the defaults, and each other level of one setting."""
    defaults, settings = bridge.end_settings, bridge.outer.settings
    return [
        {},
        *(
            {name: level}
            for name, default in defaults.items()
            for level in settings[name].get("allowed", (not default,))
            if level != default
        ),
    ]


def check_bridge(bridge: Bridge, catalog: Catalog) -> Checked:
    """Measure a round trip over a bridge, and find the faults of its hops."""
    progress = make_progress(as_json=False, plain=False)
    with tempfile.TemporaryDirectory(prefix="wattwire-check-") as folder:
        try:
            directory, study = Path(folder) / "campaign", document_of(bridge, catalog)
            runner = campaigns.begin(directory, catalog, progress, ("check", None, study))
            campaigns.execute(runner)
        finally:
            progress.close()
        campaign = Campaign(directory)
        try:
            (row,) = campaign.summary().to_dicts()
            document = campaign.run(row["run"])
            deployment = deployment_of_run(document)
            hops = hop_faults(campaign.messages(row["run"]), deployment.flows[0])
        finally:
            campaign.close()
    completed = (Outcome.COMPLETED.value, Verdict.VALID.value)
    problem = "" if (row["outcome"], row["verdict"]) == completed else _problem(document)
    return Checked(int(row["sent"] or 0), hops, deployment, problem)


def _problem(document: dict[str, Any]) -> str:
    reasons = [document["outcome_detail"], *(r["detail"] for r in document["reasons"])]
    return f"the run is {document['verdict']}: {'; '.join(filter(None, reasons))}"


def document_of(bridge: Bridge, catalog: Catalog) -> dict[str, Any]:
    """Return the study of a check: a round trip of verified messages between two hosts."""
    middleware = bridge.middleware.name
    cells = [catalog.cell(name) for name in catalog.cells if name.startswith(f"{middleware}/")]
    able = [cell for cell in cells if PIPELINE in cell.document["patterns"]]
    if not able:
        raise MissingError(f"{middleware} has no cell with the pattern {PIPELINE}")
    own = [cell for cell in able if cell.folder == bridge.inner_folder]
    places = {SENDER: NEAR, RELAY: FAR, RECEIVER: NEAR, ANY_SERVICE: FAR}
    return {
        "title": f"Check of {bridge.folder.name}",
        "factors": {FACTOR: [bridge.folder.name]},
        "fixed": {
            "cell": (own or able)[0].name, "pattern": PIPELINE, "rate_hz": 100, "verify": "full",
            "placement": "trip", "network": "wire",
            **{f"{OUTER_SETTING}{name}": level for name, level in bridge.end_settings.items()},
        },
        "plan": {
            "blocks": 1, "controls": False, "duration_s": 1.0, "baseline_s": 0.05,
            "quiet_ms": 200, "linger_ms": 2000, "retries": 0, "quiet_wait_s": 0.0,
        },
        # The check counts messages, so other load does not matter.
        "validity": {"look": True},
        RIG: {
            "hosts": {NEAR: {"kind": NETNS}, FAR: {"kind": NETNS}},
            "networks": {"wire": {}},
            "placements": {"trip": places},
        },
    }  # fmt: skip
