"""Reads the data behind tables 5 to 11 of the paper: the package's files, or a table made of them.

Albonico, Cannizza & Wortmann 2025, Frontiers in Robotics and AI 12:1548250; their replication
package is named there. README.md says what is odd about the data and what is done about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wattwire.imports import Check, Imported
from wattwire.imports.progress import tell
from wattwire.model.errors import UsageError

from . import layout, oddities, per_recording, printed, printed_tests, values
from .material import PATTERNS, RUN_S, TREATMENT, Material

RECIPES = {
    "default": "the earliest recording of full length of each run and node that began with the "
    "other node's, its rows of the run's 180 s; energy is power times the time it stands for; "
    "missing stays missing",
    "authors": "the authors' choices: the file their script took where that is known, else "
    "the earliest, with all its rows; energy a sum of power, power without samples of 3 W and "
    "more; memory that a run lacks is 0",
}
AFTER_TABLES = 99
FOLDER = Path(__file__).resolve().parent
TITLES = {
    "language": {"cpp": "C++", "python": "Python"},
    "pattern": {"topic": "topic", "service": "service", "action": "action"},
}


def read(source: Path, recipe: str) -> Imported:
    """The campaign below `source`. Raises UsageError where nothing there is known."""
    material = _material(source)
    means = printed.Means(material)
    found = means.nodes[recipe]
    tell("comparing with the printed numbers")
    tables = list(printed.checks(FOLDER, means))
    tests = list(printed_tests.checks(FOLDER, means))
    remarks = oddities.all_remarks(means, tables, tests, printed.published(FOLDER))
    if recipe == values.AUTHORS:
        found = values.with_zeros(found)
    runs, reasons = values.runs(found)
    return Imported(
        study=_study(material),
        runs=runs,
        provenance=values.provenance(found, runs),
        set_aside=(*material.set_aside, *values.unused(material, found)),
        columns=values.columns(recipe),
        reasons=reasons,
        checks=tuple(sorted((*tables, *tests), key=_place_in_paper)),
        remarks=remarks,
        machine=_machine(material),
    )


def _place_in_paper(check: Check) -> int:
    """Tables in the paper's order, then what stands in its text."""
    _, _, number = check.group.partition("Table ")
    return int(number) if number else AFTER_TABLES


def _material(source: Path) -> Material:
    if source.is_file():
        return per_recording.read(source)
    if layout.trees(source):
        return layout.read(source)
    if (source / per_recording.FILE).is_file():
        return per_recording.read(source / per_recording.FILE)
    raise UsageError(
        f"{source}: nothing here that this study can read: neither the replication package "
        f"({layout.EXPERIMENTS} with {', '.join(PATTERNS)}) nor {per_recording.FILE}"
    )


def _study(material: Material) -> Mapping[str, Any]:
    """The design that the data carry, with the paper's questions on what its authors metered."""
    levels = {
        name: material.planned[name].unique().sort().to_list() for name in TREATMENT
    }  # fmt: skip
    order = [name for name in ("topic", "service", "action") if name in levels["pattern"]]
    factors = {
        "language": levels["language"],
        "pattern": order,
        "interval_s": levels["interval_s"],
        "clients": levels["clients"],
    }
    both = ["power_w", "cpu_share", "memory_kib_total"]
    return {
        "name": "ros2-energy",
        "title": "Energy of ROS 2 communication, as Albonico et al. measured it",
        "source": "10.3389/frobt.2025.1548250",
        "goal": {
            "object": "ROS 2 nodes that exchange short messages by topic, service and action",
            "purpose": "see what the authors' own recordings say",
            "focus": "power, CPU use and memory of the two nodes that they metered",
            "viewpoint": "people who read the paper",
            "context": f"from {material.source}",
        },
        "question": [
            {"id": "RQ1", "factors": ["language"], "responses": both,
             "text": "By what ratio do Python nodes cost more than C++ nodes?"},
            {"id": "RQ2", "factors": ["interval_s", "clients"], "responses": ["power_w"],
             "text": "What do message interval and number of clients change?"},
            {"id": "RQ3", "factors": ["pattern"], "responses": ["power_w"],
             "text": "Do the patterns differ? (Each was measured on days of its own.)"},
        ],
        "factors": factors,
        "fixed": {"middleware": "ros2"},
        "plan": {"primary": "language", "blocks": material.planned["repetition"].n_unique(),
                 "duration_s": RUN_S},
        "answers": {
            "baseline": {"language": "cpp", "pattern": order[0], "clients": levels["clients"][0],
                         "interval_s": levels["interval_s"][-1]},
            "family": "the answers to RQ1, RQ2 and RQ3, together",
        },
    }  # fmt: skip


def _machine(material: Material) -> Mapping[str, Any]:
    """What the paper tells of the machine; none of it was read by us."""
    facts = [
        ("cpu_name", "Intel i5-10210U"),
        ("operating_system", "Ubuntu 22.04, ROS 2 Humble, a container for each node"),
        ("source", material.source),
    ]
    told = [{"key": key, "value": value, "unit": "", "check": "report"} for key, value in facts]
    return {"hosts": {"the authors' laptop": {"facts": told, "meters": []}}, "titles": TITLES}
