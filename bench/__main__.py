"""`python -m bench [PART…] [--pairs N] [--cells PATTERN…]`: check speed and validity.

Speed, compared with peers (default): recording, echo, pipeline, libraries, sampler, own_time, page,
scale, layers, syscalls, calls. Validity, simulated: false_alarms, coverage, sequential, run_order,
steady_state; with planted load: validity; copro --seeds. Compared with another commit: kits --old
REV, summary_row --old REV. Steps and threads of a round trip: steps. Layers: layer_delays.
Independent tools: peers, exec, topics. Variants: exec_variants. Robot and co-processor: copro.
Secured cells: security. Planted energy: machine, sources. Cost of reading: meters, stream_meter. As
root: proof, links, planted_links, clocks. Prints Markdown.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scipy import stats

from bench import (
    calls,
    coverage,
    false_alarms,
    kits,
    own_time,
    page,
    relay_variants,
    sampler,
    scale,
    sequential,
    summary_row,
    syscalls,
    validity,
)
from bench.coprocessing import bridge_memory, engines, planted_break_even, round_trips
from bench.nodes import Bench, bench, make_cells_known, own_cost_roles
from bench.pairs import PAIRS, abba, compared, lost_pairs, table
from bench.peers import (
    commands,
    meters,
    pipeline,
    secured,
    step_costs,
    stream_meter,
    tools,
    topics,
)
from bench.peers.libraries import comparisons
from bench.recorded_layers import costs, delays
from bench.rigs import bridges, clocks, links, planted_joules, planted_links, planted_ratios, proof
from bench.runs_simulated import confirming, run_order, steady_state, strata, variants
from bench.turns import NO_REAL_TIME_NOTICE, on_cores, real_time_on_last_core
from wattwire.rig.bare_clients import bare_server, printed_ns

BARE = Path(__file__).with_name("bare")
BYTES, CALLS = 64, 4000
MESSAGES = 100_000
RECORDING_NS = {"cpp": 100.0, "rust": 100.0, "python": 1000.0}
"""Language → promised cost of recording one message, in ns; no promise for others."""
IMPORT_S, REPORT_S, MEMORY_MB, PAGE_MB = 10.0, 3.0, 1000.0, 8.0


def recording(workbench: Bench, pairs: int) -> None:
    """Print the cost of each kit per message on both sides, without a middleware."""
    print("\n## Recording one message of 64 B, verify = header\n")
    print("| kit | side | ns, median | 95 % limit, upper | promised | verdict |")
    print("|---|---|---|---|---|---|")
    for name in workbench.catalog.cells:
        if not name.startswith("null/"):
            continue
        cell = workbench.cell(name)
        if cell is None:
            continue
        language = cell.folder
        promise = RECORDING_NS.get(language)
        for role in own_cost_roles(cell):
            runs = [workbench.per_message_ns(cell, role, MESSAGES) for _ in range(pairs)]
            print(f"| {language} | {role} | {_absolute(runs, promise)} |", flush=True)


def _absolute(values: list[float], promise: float | None) -> str:
    """Return table cells: median, upper limit of the geometric mean, promise and verdict.

    Without a promise, the last two cells are empty. The limits are one-sided 95 % t limits of the
    geometric mean.
    """
    logs = np.log(values)
    error = logs.std(ddof=1) / np.sqrt(len(logs)) * stats.t.ppf(0.95, len(logs) - 1)
    low, high = np.exp(logs.mean() - error), np.exp(logs.mean() + error)
    if promise is None:
        return f"{np.median(values):.1f} | {high:.1f} | – | "
    verdict = "passed" if high <= promise else "failed" if low > promise else "undecided"
    return f"{np.median(values):.1f} | {high:.1f} | ≤ {promise:g} | {verdict}"


def echo(workbench: Bench, pairs: int) -> None:
    """Compare cells over UDP in compiled languages with an echo program in C."""
    program = workbench.folder / "echo"
    subprocess.run(["gcc", "-O2", "-Wall", "-o", program, BARE / "echo.c"], check=True)

    def bare_echo() -> float:
        with bare_server([str(program), "serve"]) as port:
            return printed_ns([str(program), "ping", port, str(BYTES), str(CALLS)])

    results = []
    for name in ("udp/cpp", "udp/rust"):
        cell = workbench.cell(name) if name in workbench.catalog.cells else None
        if cell is not None:
            label = f"{name} against an echo in C"
            sides = abba(label, functools.partial(workbench.ping_ns, cell, CALLS), bare_echo, pairs)
            results += compared(label, "ns", sides, 1.05)
    print("\n## Ping-pong over UDP, 64 B, median round trip\n")
    print(table(results), flush=True)


def pipelines(workbench: Bench, pairs: int) -> None:
    """Compare a pipeline over UDP with a chain of forwarders in C."""
    print(f"\n## Pipeline over UDP, {pipeline.BYTES} B, median end-to-end latency\n")
    print(table(list(pipeline.comparisons(workbench, pairs))), flush=True)


def libraries(workbench: Bench, pairs: int) -> None:
    """Compare cells with a bare client of their library, and with a tool of their middleware."""
    print(
        "\n## Ping-pong compared with a bare client of the same library, 64 B, median round trip\n"
    )
    print(table(list(comparisons(workbench, pairs))), flush=True)


def securing(workbench: Bench, pairs: int, cells: Sequence[str]) -> None:
    """Compare secured cells with bare clients of their library that are secured alike."""
    print("\n## Ping-pong of secured cells, 64 B, median round trip\n")
    print(table(list(secured.comparisons(workbench, pairs, cells))), flush=True)


def coprocessing(workbench: Bench, pairs: int) -> None:
    """Compare robot cells with bare loops of their libraries, and engines with `openssl speed`."""
    print(
        f"\n## Ping-pong compared with a bare loop of its library, {BYTES} B, median round trip\n"
    )
    print(table(list(round_trips.comparisons(workbench, pairs))), flush=True)
    print(f"\n## AES-128 compared with `openssl speed`, {engines.BYTES >> 10} KiB, per CPU time\n")
    print(table(list(engines.comparisons(workbench, pairs))), flush=True)


def calling(
    workbench: Bench, pairs: int, cells: Sequence[str], side_s: float, together: bool
) -> None:
    """Compare the clients of request-reply cells with bare clients of their libraries."""
    placement = "client and server on one core" if together else "client and server on a core each"
    print(f"\n## Calls per second beside a bare client of the same library, {placement}\n")
    results = list(calls.comparisons(workbench, pairs, cells, side_s, together))
    print(f"\n{table(results)}", flush=True)


def comparing_kits(
    workbench: Bench, pairs: int, revision: str, cells: Sequence[str], side_s: float
) -> None:
    """Compare kits with the kits of a commit: time per message, and calls per second."""
    results = list(kits.comparisons(workbench, pairs, revision, cells, side_s))
    print(f"\n## Kits compared with those of {revision}\n\n{table(results)}", flush=True)


def computing_rows(workbench: Bench, pairs: int, revision: str) -> None:
    """Compare the time for the results of a run with that of another commit."""
    results = list(summary_row.comparisons(workbench, pairs, revision))
    print(f"\n## Results of a run, compared with {revision}\n\n{table(results)}", flush=True)


def sampling(_: Bench, pairs: int) -> None:
    """Print the cost of the sampler's tick tier, as a share of a core and relative to peers."""
    results = dict(sampler.comparisons(pairs))
    print("\n## The sampler's tick tier\n")
    print(table([comparison for rows in results.values() for comparison in rows]))
    print("\n| tick tier alone | % of a core, median | 95 % limit, upper | promised | verdict |")
    print("|---|---|---|---|---|")
    for tick_hz, promise in sampler.PROMISED_PERCENT.items():
        percents = [percent for comparison in results[tick_hz] for percent in comparison.ours]
        if percents:
            label = f"{sampler.PROCESSES} processes, {tick_hz:g} Hz"
            print(f"| {label} | {_absolute(percents, promise)} |", flush=True)


def own(_: Bench, pairs: int) -> None:
    """Print the time per run that wattwire itself needs, with synced files."""
    print("\n## Our own time per run\n")
    print("| what | ms, median | 95 % limit, upper | promised | verdict |\n|---|---|---|---|---|")
    phases = {d.name: own_time.phases_per_run(d, pairs) for d in own_time.DEPLOYMENTS}
    for deployment in own_time.DEPLOYMENTS:
        values = [1000 * sum(run.values()) for run in phases[deployment.name]]
        print(f"| {deployment.name} | {_absolute(values, deployment.promised_ms)} |", flush=True)
    print("\n| what | phase | ms, median | ms, largest |\n|---|---|---|---|")
    for name, runs in phases.items():
        for phase in runs[0]:
            values = [1000 * run.get(phase, 0.0) for run in runs]
            print(f"| {name} | {phase} | {np.median(values):.1f} | {max(values):.1f} |")


def counting_calls(workbench: Bench, pairs: int, cells: Sequence[str], side_s: float) -> None:
    """Print the cost of counting system calls in the kernel and by strace, and their agreement."""
    print("\n## Time of a call while system calls are counted, beside the same uncounted\n")
    results = list(syscalls.comparisons(workbench, pairs, cells, side_s))
    print(f"\n{table(results)}")
    print("\n| a program's calls | in the kernel | strace | apart | promised | verdict |")
    print("|---|---|---|---|---|---|")
    for name, in_kernel, by_strace in syscalls.agreement(workbench):
        if not in_kernel or not by_strace:
            print(
                f"| {name} | {in_kernel} | {by_strace} | – | ≤ {syscalls.AGREEMENT:g} | undecided |"
            )
            continue
        deviation = abs(in_kernel / by_strace - 1)
        verdict = "passed" if deviation <= syscalls.AGREEMENT else "failed"
        row_cells = f"{deviation:.4f} | ≤ {syscalls.AGREEMENT:g} | {verdict}"
        print(f"| {name} | {in_kernel:.0f} | {by_strace:.0f} | {row_cells} |", flush=True)


def pages(_: Bench, pairs: int) -> None:
    """Print the time and memory for the page of a large package, from raw files and the store."""
    measured = page.measure(pairs)
    written = measured.written
    print(
        f"\n## The page of {written.runs:,} runs ({written.files:,} files, {written.rows:,} rows) "
        f"on {page.CORES} cores\n"
    )
    print("| what | s, median | 95 % limit, upper | promised | verdict |\n|---|---|---|---|---|")
    print(f"| raw files to the page | {_absolute(measured.import_s, IMPORT_S)} |")
    print(
        f"| our store to the page, every figure anew | {_absolute(measured.report_s, REPORT_S)} |"
    )
    print(f"| our store to the page, figures as before | {_absolute(measured.again_s, REPORT_S)} |")
    print("\n| what | MB, at most | promised | verdict |\n|---|---|---|---|")
    for name, largest, promise in (
        ("memory from raw files", max(measured.import_mb), MEMORY_MB),
        ("memory from our store", max(measured.report_mb), MEMORY_MB),
        ("the page", measured.page_mb, PAGE_MB),
    ):
        verdict = "passed" if largest < promise else "failed"
        print(f"| {name} | {largest:.1f} | < {promise:g} | {verdict} |", flush=True)


def sizes(_: Bench, __: int) -> None:
    """Print one measurement of each large table and of a run with many messages."""
    print("\n## Large campaigns\n")
    print("| what | measured | promised | verdict |\n|---|---|---|---|")
    for row in scale.rows(scale.PAGE_ROWS, scale.IMPORT_ROWS, scale.MESSAGES, scale.MANY_BLOCKS):
        verdict = "passed" if row.value <= row.promised else "failed"
        cells = f"{row.value:.1f} {row.unit} | ≤ {row.promised:g} {row.unit} | {verdict}"
        print(f"| {row.name} | {cells} |", flush=True)


def one_core() -> contextlib.AbstractContextManager[None]:
    """Restrict this thread, and the processes that it starts, to one core.

    Otherwise, the scheduler may run two alternating nodes on one core or on two. Waking the other
    core costs several times the work of either side, which would mask the difference.
    """
    return on_cores(max(os.sched_getaffinity(0)))


def recording_layers(workbench: Bench, pairs: int) -> None:
    """Print the time of an event of layers, and the latency and memory of recorded nodes."""
    print("\n## Recording the layers of messages\n")
    print("| what | ns, median | 95 % limit, upper | promised | verdict |\n|---|---|---|---|---|")
    times_ns = costs.event_times_ns(workbench, pairs)
    print(f"| an event | {_absolute(times_ns, costs.EVENT_NS)} |")
    results = [
        *costs.uprobe_comparisons(workbench, pairs),
        *costs.comparisons(workbench, pairs),
    ]
    print(f"\n{table(results)}")
    recorded, plain = costs.peaks_mib(workbench, min(pairs, costs.MEMORY_PAIRS))
    if len(recorded) < 2:
        return
    print(f"\n| a node of {costs.CELL} with 10⁶ events | MiB, median | 95 % limit, upper |", end="")
    print(" promised | verdict |\n|---|---|---|---|---|")
    increases = [ours - peer for ours, peer in zip(recorded, plain, strict=True)]
    print(f"| peak of resident memory | {_absolute([*recorded], costs.MEMORY_MIB)} |")
    print(f"| the same, without recording | {_absolute([*plain], None)} |")
    print(f"| increase | {_absolute(increases, costs.MEMORY_MIB)} |", flush=True)


def delaying_layers(workbench: Bench, pairs: int) -> None:
    """Print the shift of each layer over a delay that is planted in it."""
    print("\n## A planted delay of 0.2 to 2 ms, and the shift of its layer\n")
    print("| layer | pairs | slope ± | other layers, at most | verdict |\n|---|---|---|---|---|")
    for row in delays.results(workbench, pairs):
        print(row.row, flush=True)


MEASURED: dict[str, Callable[[Bench, int], None]] = {
    "recording": recording, "echo": echo, "pipeline": pipelines, "libraries": libraries,
    "sampler": sampling, "own_time": own, "page": pages, "scale": sizes,
    "layers": recording_layers,
}  # fmt: skip
PARTS = (*MEASURED, "syscalls", "calls")

SIMULATIONS = {
    "false_alarms": false_alarms.main, "coverage": coverage.main, "sequential": sequential.main,
    "run_order": run_order.main, "steady_state": steady_state.main, "strata": strata.main,
    "variants": variants.main, "confirming": confirming.main,
}  # fmt: skip
VALIDITY = "validity"
KITS, SUMMARY_ROW = "kits", "summary_row"
BRIDGES, LINKS, PLANTED_LINKS, CLOCKS = "bridges", "links", "planted_links", "clocks"
COPRO = "copro"
STEPS = "steps"
LAYER_DELAYS = "layer_delays"
SECURITY, PROOF = "security", "proof"
MACHINE, METERS, SOURCES, STREAM_METER = "machine", "meters", "sources", "stream_meter"
PEERS, EXEC, EXEC_VARIANTS, TOPICS = "peers", "exec", "exec_variants", "topics"
ON_REQUEST = (
    VALIDITY, KITS, SUMMARY_ROW, BRIDGES, LINKS, PLANTED_LINKS, CLOCKS, COPRO, STEPS, PEERS, EXEC,
    EXEC_VARIANTS, LAYER_DELAYS, MACHINE, METERS, SOURCES, STREAM_METER, TOPICS, SECURITY, PROOF,
)  # fmt: skip
TRIALS = 10_000
IN_TURNS = {"echo", "pipeline", "libraries", "syscalls", STEPS, SECURITY}


def _options() -> argparse.Namespace:
    """Return the checked command line. An invalid one ends the program."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        choices=[*PARTS, *SIMULATIONS, *ON_REQUEST, []],
    )
    parser.add_argument("--pairs", type=int, help=f"default {PAIRS}, of calls {calls.PAIRS}")
    parser.add_argument(
        "--cells", nargs="+", default=["*"], metavar="PATTERN",
        help="of calls, syscalls, kits, steps, peers, security and proof: those cells, as rest/go "
        "or 'rpc/*'",
    )  # fmt: skip
    parser.add_argument(
        "--seconds", type=float,
        help="of the parts calls, kits and syscalls: how long a side takes "
        f"(default {calls.SIDE_S:g} and {syscalls.SIDE_S:g}); of the part exec_variants: the "
        f"window (target: {relay_variants.WINDOW_S:g})",
    )  # fmt: skip
    parser.add_argument(
        "--together", action="store_true",
        help="of the part calls: client and server on one core, not on a core each",
    )  # fmt: skip
    parser.add_argument("--trials", type=int, default=TRIALS, help="campaigns of a simulated row")
    parser.add_argument(
        "--runs", type=int, default=validity.RUNS,
        help="of the part validity: runs of each cell under each load",
    )  # fmt: skip
    parser.add_argument(
        "--journal", type=Path, metavar="FILE",
        help="of the parts validity, planted_links, copro, exec_variants, machine and sources: a "
        "line for each run, seed or try; those that are in it are not repeated",
    )  # fmt: skip
    parser.add_argument(
        "--old", metavar="REV", help="of the parts kits and summary_row: the commit to compare with"
    )
    parser.add_argument(
        "--seeds", type=int,
        help=f"of the parts planted_links and clocks (default {planted_links.SEEDS}); of copro: "
        f"measure break-evens (target: {planted_break_even.SEEDS} seeds), not pairs",
    )  # fmt: skip
    parser.add_argument(
        "--soak", type=float, metavar="SECONDS",
        help="of the parts bridges and copro: measure the memory over this time (target: 600), not "
        "pairs",
    )  # fmt: skip
    parser.add_argument(
        "--first-seed", type=int, default=1, help="of the parts planted_links and copro"
    )
    options = parser.parse_args()
    for part in {KITS, SUMMARY_ROW} & {*options.parts}:
        if not options.old:
            parser.error(f"{part}: found no --old; allowed: --old REV")
    if options.pairs is not None and options.pairs < 2:
        parser.error(f"--pairs: found {options.pairs}; allowed: 2 or more, limits need two")
    return options


def _report_alone(part: str, options: argparse.Namespace) -> bool:
    """Measure a part that needs no agent of the bench. Return False for other parts."""
    if part == EXEC:
        commands.report(options.pairs or commands.REPEATS)
    elif part == EXEC_VARIANTS:
        journal = options.journal or Path("exec_variants.jsonl")
        window_s = options.seconds or relay_variants.WINDOW_S
        relay_variants.report(options.pairs or relay_variants.TRIES, window_s, journal)
    elif part == MACHINE:
        journal = options.journal or Path("planted_joules.jsonl")
        planted_joules.report(options.pairs or planted_joules.CAMPAIGNS, journal)
    elif part == SOURCES:
        journal = options.journal or Path("planted_ratios.jsonl")
        planted_ratios.report(options.pairs or planted_ratios.CAMPAIGNS, journal)
    elif part == METERS:
        meters.report(options.pairs or meters.ROUNDS)
    elif part == STREAM_METER:
        stream_meter.report(options.pairs or stream_meter.PAIRS)
    elif part == TOPICS:
        topics.report(options.pairs or PAIRS)
    elif part == BRIDGES:
        bridges.report(options.pairs or PAIRS, options.soak)
    elif part == PROOF:
        proof.report(options.pairs or proof.REPEATS, options.cells)
    elif part == LINKS:
        links.report(options.pairs or PAIRS)
    elif part == PLANTED_LINKS:
        journal = options.journal or Path("planted_links.jsonl")
        seeds = options.seeds or planted_links.SEEDS
        planted_links.report(options.first_seed, seeds, journal)
    elif part == CLOCKS:
        clocks.report(options.seeds or clocks.SEEDS)
    elif part == COPRO and options.soak:
        bridge_memory.report(options.soak)
    elif part == COPRO and options.seeds:
        journal = options.journal or Path("planted_break_even.jsonl")
        planted_break_even.report(options.first_seed, options.seeds, journal)
    else:
        return False
    return True


def main() -> int:
    """Measure the given parts. Return 1 if a pair was lost, and print each lost pair."""
    options = _options()
    make_cells_known()
    # Exit as on Ctrl-C. The default action of SIGTERM would leave client processes, some of them
    # stopped.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    for part in options.parts or PARTS:
        if part in SIMULATIONS:
            SIMULATIONS[part](options.trials)
            continue
        if _report_alone(part, options):
            continue
        if part == COPRO:
            # The agent of the bench starts the bridge, so it must be created within this context.
            with real_time_on_last_core() as is_real_time, bench() as workbench:
                print("" if is_real_time else NO_REAL_TIME_NOTICE, end="")
                coprocessing(workbench, options.pairs or PAIRS)
            continue
        with one_core() if part in IN_TURNS else contextlib.nullcontext(), bench() as workbench:
            if part == "calls":
                side_s = options.seconds or calls.SIDE_S
                pairs = options.pairs or calls.PAIRS
                calling(workbench, pairs, options.cells, side_s, options.together)
            elif part == "syscalls":
                side_s = options.seconds or syscalls.SIDE_S
                counting_calls(workbench, options.pairs or PAIRS, options.cells, side_s)
            elif part == KITS:
                side_s, pairs = options.seconds or calls.SIDE_S, options.pairs or PAIRS
                comparing_kits(workbench, pairs, options.old, options.cells, side_s)
            elif part == SECURITY:
                securing(workbench, options.pairs or PAIRS, options.cells)
            elif part == STEPS:
                step_costs.report(workbench, options.cells)
            elif part == LAYER_DELAYS:
                delaying_layers(workbench, options.pairs or PAIRS)
            elif part == PEERS:
                print("\n## Cells beside tools that others wrote, median latency")
                tools.report(workbench, options.pairs or tools.PAIRS, options.cells)
            elif part == SUMMARY_ROW:
                computing_rows(workbench, options.pairs or PAIRS, options.old)
            elif part == VALIDITY:
                journal = options.journal or workbench.folder / "validity.jsonl"
                validity.report(validity.measure(workbench, options.runs, journal))
            else:
                MEASURED[part](workbench, options.pairs or PAIRS)
    for pair in lost_pairs:
        print(f"lost: {pair}", file=sys.stderr)
    return 1 if lost_pairs else 0


if __name__ == "__main__":
    sys.exit(main())
