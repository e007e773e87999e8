"""Collect the series that meters read, the sources of energy, and the libraries of the nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wattwire.analysis.dataset import Evidence

KINDS = ("measured", "estimate", "bound")


@dataclass(frozen=True)
class Meter:
    """A meter with the quantities of its series of one kind."""

    name: str
    quantities: tuple[str, ...]


@dataclass(frozen=True)
class SeriesOfKind:
    """The meters with series of a kind: "measured", "estimate" or "bound"."""

    kind: str
    meters: tuple[Meter, ...]


@dataclass(frozen=True)
class Library:
    """A cell's library, with its version, "" if unknown."""

    cell: str
    name: str
    version: str


@dataclass(frozen=True)
class Meters:
    """The series by kind, read at up to `hz`; the sources of energy values; and the libraries."""

    hz: float = 0.0
    series: tuple[SeriesOfKind, ...] = ()
    energy_sources: tuple[str, ...] = ()
    libraries: tuple[Library, ...] = ()


def meters(evidence: Evidence) -> Meters:
    """Return the meters of the valid runs, and the libraries of all runs."""
    frame = evidence.usable
    has_sources = "energy_source" in frame.columns
    sources = set(frame["energy_source"].drop_nulls().to_list()) if has_sources else set()
    return Meters(
        evidence.study.meters.tick_hz,
        tuple(_series(evidence)),
        tuple(sorted(sources)),
        _libraries(evidence),
    )


def _series(evidence: Evidence) -> Iterator[SeriesOfKind]:
    by_meter: dict[str, set[tuple[str, str]]] = {}
    for run in evidence.usable["run"].to_list() if evidence.usable.height else []:
        for series in (evidence.runs[run].get("sampling") or {}).get("series", []):
            kind = str(series.get("kind", "measured"))
            by_meter.setdefault(str(series.get("meter")), set()).add(
                (str(series.get("quantity")), kind)
            )
    for kind in KINDS:
        of_kind = tuple(
            Meter(meter, tuple(sorted(quantity for quantity, k in quantities if k == kind)))
            for meter, quantities in sorted(by_meter.items())
            if any(k == kind for _, k in quantities)
        )
        if of_kind:
            yield SeriesOfKind(kind, of_kind)


def _libraries(evidence: Evidence) -> tuple[Library, ...]:
    """Return the libraries as reported by the nodes, sorted by the text of the methods."""
    libraries = set()
    for run in evidence.runs.values():
        for node in run.get("nodes", []):
            library = (node.get("ready") or {}).get("library") or {}
            if library.get("name"):
                version = str(library.get("version") or "")
                libraries.add(Library(str(node["cell"]), str(library["name"]), version))
    return tuple(sorted(libraries, key=lambda one: f"{one.cell}: {one.name} {one.version}"))
