"""Text on datagrams dropped at full socket buffers. See `analysis/findings/datagrams.py`."""

from __future__ import annotations

from collections.abc import Sequence

from wattwire.analysis.dataset import Evidence, all_levels
from wattwire.analysis.findings.datagrams import DROPPED, Drops, drops
from wattwire.analysis.findings.runs import settings_with
from wattwire.model.setting_purposes import RECEIVE_BUFFER_BYTES
from wattwire.report.findings.finding import Detector, Finding, Searched, Silence
from wattwire.report.parts import Column, Table
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "socket_buffers",
    {
        "title": "Datagrams dropped at full socket buffers",
        "cause": (
            "The kernel drops a datagram if the buffer of its receiving socket is full. A message "
            "or a burst that is larger than the buffer fills it even on a fast network, before the "
            "program reads. Without retransmissions, each dropped datagram is a lost message or a "
            "part of one."
        ),
        "summary": (
            "In {runs:plural run} of {counted}, the kernel dropped {datagrams:plural datagram}"
            "{hosts}. {lost:plural message/messages} of these runs were lost{flows}. {agreement}"
        ),
        "hosts": " ({hosts:listed})",
        "host": "host {host}: {datagrams}",
        "flows": " ({flows:listed})",
        "flow": "flow {flow}: {lost}",
        "equal_in_all": (
            "Each of these runs lost as many messages as the kernel dropped datagrams, so the "
            "drops explain these losses."
        ),
        "equal_in_some": (
            "{equal:count} of these {runs:plural run} lost as many messages as the kernel dropped "
            "datagrams."
        ),
        "remedy": (
            "A larger buffer holds more datagrams: {settings:listed}, and net.core.rmem_max and "
            "net.core.rmem_default of the receiving host, which limit it."
        ),
        "confirm": (
            "To confirm the cause, raise the socket buffer, measure again and compare the two "
            "campaigns."
        ),
        "middleware": "a setting of the middleware",
        "table": "Runs with datagrams dropped at full socket buffers",
        "datagrams": "datagrams dropped",
        "not_counted": (
            "Drops at socket buffers were not tested, because no run has the counter of the meter "
            "net_stack."
        ),
        "silent": "The kernel dropped no datagram at a full socket buffer ({counted:plural run}).",
    },
)


def find(searched: Searched) -> Finding | Silence:
    """Return the finding over all valid runs, or the reason for its absence."""
    evidence = searched.evidence
    dropped = drops(evidence, DROPPED)
    if dropped is None:
        return Silence(PHRASES("not_counted"))
    if not dropped.runs:
        return Silence(PHRASES("silent", counted=dropped.counted))
    is_shown = dropped.equal == len(dropped.runs) > 1
    settings = [f"settings.{name}" for name in settings_with(
        evidence, searched.runs, RECEIVE_BUFFER_BYTES)]  # fmt: skip
    return Finding(
        "dropped-datagrams",
        PHRASES("title"),
        is_shown,
        PHRASES("cause"),
        (_summary(dropped), PHRASES("remedy", settings=settings or [PHRASES("middleware")])),
        "" if is_shown else PHRASES("confirm"),
        (
            drops_table(
                evidence,
                dropped,
                "finding-dropped-datagrams",
                PHRASES("table"),
                PHRASES("datagrams"),
            ),
        ),
    )


def _summary(dropped: Drops) -> Phrase:
    hosts = [PHRASES("host", host=host, datagrams=sum_) for host, sum_ in dropped.by_host.items()]
    flows = [PHRASES("flow", flow=flow, lost=lost) for flow, lost in dropped.lost_by_flow.items()]
    runs, equal = len(dropped.runs), dropped.equal
    agreement = PHRASES("equal_in_some", equal=equal, runs=runs)
    return PHRASES(
        "summary",
        runs=runs,
        counted=dropped.counted,
        datagrams=int(dropped.datagrams.sum()),
        hosts=PHRASES("hosts", hosts=hosts) if hosts else "",
        lost=int(dropped.lost.sum()),
        flows=PHRASES("flows", flows=flows) if flows else "",
        agreement=PHRASES("equal_in_all") if equal == runs else agreement,
    )


def drops_table(
    evidence: Evidence, counted: Drops, id_: str, title: str, datagrams_title: str
) -> Table:
    """Return the table of runs with dropped datagrams, in run order."""
    levels = {entry["run"]: all_levels(entry) for entry in evidence.designed}
    rows = [
        {
            **{name: levels.get(run, {}).get(name) for name in evidence.varied},
            "run": run, "datagrams": datagrams, "lost": lost,
        }
        for run, datagrams, lost in zip(
            counted.runs, counted.datagrams, counted.lost, strict=True
        )
    ]  # fmt: skip
    columns = [
        *factor_columns(evidence),
        Column("run", "run"),
        Column("datagrams", datagrams_title, "measured"),
        Column("lost", "messages lost", "measured"),
    ]
    return Table(id_, title, columns, rows, "")


def _detect(searched: Searched) -> Sequence[Finding | Silence]:
    return [find(searched)]


DETECTOR = Detector(39, _detect)
