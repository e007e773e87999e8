"""Recompute the numbers of a campaign from its files, without any code of wattwire.

`python tests/end_to_end/recompute.py DIR` prints every number that differs, and the number of
numbers that are equal. It computes counts, percentiles of latency and CPU time per message of each
run from the records and readings, and all ratios with their intervals from these, by the formulas
of docs/method.md.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

WARM_UP, FAILED, TIMEOUT, CORRUPT = 1, 2, 4, 8
"""Flags of a record (contract/CONTRACT.md)."""
SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999, "max": 1.0}
TOLERANCE = 1e-9
Row = dict[str, float | None]


class Differing(list[str]):
    """The numbers that differ, as texts. `equal` counts the others."""

    equal = 0

    def compare(self, where: str, name: str, stored: float | None, computed: float | None) -> None:
        if stored is None or computed is None:
            is_equal = stored is computed
        else:
            is_equal = math.isclose(stored, computed, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        if is_equal:
            self.equal += 1
        else:
            self.append(f"{where}: {name}: stored {stored}, computed {computed}")


def flag(bits: int) -> pl.Expr:
    return (pl.col("flags") & bits) != 0


def counts_and_deliveries(
    records: pl.DataFrame, flows: Sequence[Mapping[str, Any]]
) -> tuple[Row, pl.DataFrame]:
    """Return the counts of a run, and the due time, begin and end of each expected delivery."""
    totals = {"sent": 0, "expected": 0, "received_unique": 0, "failed": 0}
    frames = []
    for flow in flows:
        own = records.filter(pl.col("node") == flow["sender"])
        if flow["result"]:
            sent = own.filter(pl.col("kind") == flow["result"]).unique("counter", keep="first")
            failed = sent.filter(flag(FAILED)).height
            totals["failed"] += failed
            totals["received_unique"] += sent.filter(~flag(FAILED | TIMEOUT)).height
            totals["expected"] += sent.height
            sides = [sent]
        else:
            sent = own.filter(~flag(FAILED), kind="message").unique("counter", keep="first")
            sides = []
            for receiver in flow["receivers"]:
                arrived = records.filter(
                    pl.col("node") == receiver, pl.col("sender") == flow["sender"], kind="message"
                )
                arrived = arrived.sort("end_ns").unique("counter", keep="first")
                both = sent.select("counter", "intended_ns", "begin_ns", own_flags="flags").join(
                    arrived.select("counter", "end_ns", "flags"), on="counter", how="left"
                )
                totals["received_unique"] += both["end_ns"].len() - both["end_ns"].null_count()
                totals["expected"] += sent.height
                sides.append(both.with_columns(flags=pl.col("own_flags") & WARM_UP))
        totals["sent"] += sent.height
        columns = ("intended_ns", "begin_ns", "end_ns", "flags")
        frames += [side.select(columns) for side in sides]
    return dict(totals), pl.concat(frames)


def latencies(deliveries: pl.DataFrame, unsent: int) -> Row:
    """Return the percentiles (µs) from the due time, and from the send call, without warm-up."""
    counted = deliveries.filter(~flag(WARM_UP))
    lost = counted["end_ns"].is_null() | counted.select(flag(TIMEOUT | FAILED)).to_series()
    end_ns, begin_ns = counted["end_ns"].to_numpy(), counted["begin_ns"].to_numpy()
    intended_ns = counted["intended_ns"].fill_null(counted["begin_ns"]).to_numpy()
    row: Row = {}
    starts = {"latency": np.minimum(intended_ns, begin_ns), "since_send": begin_ns}
    for stem, start_ns in starts.items():
        late = unsent if stem == "latency" else 0
        finite = np.sort(((end_ns - start_ns) / 1000.0)[~lost.to_numpy()])
        total = counted.height + late
        for name, share in SHARES.items():
            rank = max(1, math.ceil(round(share * total, 9))) - 1
            row[f"{stem}_{name}_us"] = float(finite[rank]) if rank < finite.size else None
        row[f"{stem}_mean_us"] = float(finite.mean()) if finite.size else None
    return row


def cpu_us_per_message(
    readings: pl.DataFrame, processes: Sequence[str], begin_ns: int, end_ns: int, sent: int
) -> float | None:
    """Return the CPU time (µs) of all processes per message, between two interpolated readings."""
    cpu = readings.filter(quantity="cpu_time", scope="process", kind="measured").sort("t_ns")
    total_ns = 0.0
    for process in processes:
        own = cpu.filter(pl.col("subject") == process)
        own = own.filter(pl.col("meter") == own["meter"].min())
        if own.height < 2:
            continue
        at = np.interp([begin_ns, end_ns], own["t_ns"].to_numpy(), own["value"].to_numpy())
        total_ns += float(at[1] - at[0])
    return total_ns / 1000.0 / sent if sent else None


def run_of(folder: Path, stored: Mapping[str, Any]) -> Row:
    """Return the recomputed numbers of one attempt. `unsent` is taken from the stored row."""
    document = json.loads((folder / "run.json").read_text("utf-8"))
    deployment = json.loads((folder / "deployment.json").read_text("utf-8"))
    records = pl.read_parquet(folder / "messages.parquet", glob=False)
    flows, window = deployment["flows"], document["window"]
    row, deliveries = counts_and_deliveries(records, flows)
    unsent = int(stored.get("unsent_after_warmup") or 0)
    row |= latencies(deliveries, unsent)
    own = pl.concat(
        records.filter(
            pl.col("node") == flow["sender"],
            pl.col("kind") == (flow["result"] or "message"),
            pl.lit(bool(flow["result"])) | ~flag(FAILED),
        )
        for flow in flows
    )
    begin_ns, end_ns = window["cost_begin_ns"], window["end_ns"]
    counted = own.filter(pl.col("begin_ns") >= begin_ns)
    if begin_ns == window["start_ns"]:
        counted = own
    sent = counted.n_unique(["node", "counter"]) if counted.height else 0
    readings = pl.read_parquet(folder / "quantities.parquet", glob=False)
    names = [process["name"] for process in deployment["processes"]]
    row["sent_in_cost_window"] = sent
    row["cost_window_s"] = (end_ns - begin_ns) / 1e9
    row["cpu_us_per_message"] = cpu_us_per_message(readings, names, begin_ns, end_ns, sent)
    return row


def ratio(
    values: Sequence[float],
    blocks: Sequence[int],
    treatments: Sequence[tuple[Any, ...]],
    sides: tuple[Sequence[bool], Sequence[bool]],
    others: Sequence[tuple[Any, ...]],
    confidence: float,
) -> dict[str, tuple[float, float, float]]:
    """Return degrees of freedom → (ratio, lower limit, upper limit), by least squares.

    The model has a mean for each treatment and each block. The contrast has the same weight for
    each combination of the `others` levels that has both sides. The error is that of the contrast's
    own treatments (Welch and Satterthwaite), or pooled over all treatments, as in a single block.
    """
    logs = np.log(np.asarray(values))
    names, numbers = list(dict.fromkeys(treatments)), list(dict.fromkeys(blocks))
    design = np.array(
        [[t == name for name in names] + [b == number for number in numbers]
         for t, b in zip(treatments, blocks, strict=True)], dtype=float,
    )  # fmt: skip
    inverse = np.linalg.pinv(design.T @ design)
    coefficients = inverse @ design.T @ logs
    residuals = logs - design @ coefficients
    shares = 1.0 - np.einsum("ij,jk,ik->i", design, inverse, design)
    strata: dict[tuple[Any, ...], tuple[list[int], list[int]]] = {}
    for position, other in enumerate(others):
        column = names.index(treatments[position])
        for side in (0, 1):
            pair = strata.setdefault(other, ([], []))
            if sides[side][position] and column not in pair[side]:
                pair[side].append(column)
    paired = [(upper, lower) for upper, lower in strata.values() if upper and lower]
    weights = np.zeros(design.shape[1])
    for upper, lower in paired:
        weights[upper[0]] += 1 / len(paired)
        weights[lower[0]] -= 1 / len(paired)
    centre = float(weights @ coefficients)
    influence = design @ inverse @ weights
    limits = {}
    parts = []
    for name in names:
        own = np.array([treatment == name for treatment in treatments])
        degrees = float(shares[own].sum())
        variance = float(np.sum(residuals[own] ** 2)) / degrees
        parts.append((float(np.sum(influence[own] ** 2)) * variance, degrees))
    own_variance = sum(part for part, _ in parts)
    own_degrees = own_variance**2 / sum(part**2 / degrees for part, degrees in parts)
    pooled_degrees = float(round(shares.sum()))
    pooled = float(residuals @ residuals) / pooled_degrees * float(influence @ influence)
    for variance, degrees in ((pooled, pooled_degrees), (own_variance, own_degrees)):
        margin = stats.t.ppf(0.5 + confidence / 2, degrees) * math.sqrt(variance)
        limits[f"{degrees:.6f}"] = tuple(
            math.exp(centre + sign * margin) for sign in (0.0, -1.0, 1.0)
        )
    return limits  # type: ignore[return-value]


def compare_ratios(folder: Path, rows: Sequence[Mapping[str, Any]], differing: Differing) -> int:
    """Compare all ratios of report/analysis.json; return their number. `rows` are the used runs."""
    page = json.loads((folder / "report" / "analysis.json").read_text("utf-8"))
    study = json.loads((folder / "study.json").read_text("utf-8"))
    varied = [name for name, levels in study["factors"].items() if len(levels) > 1]
    compared = 0
    for contrast in page["contrasts"]:
        if contrast.get("kind") != "ratio" or contrast.get("estimate") is None:
            continue
        factor = contrast["factor"]
        known = [row for row in rows if row[contrast["response"]] is not None]
        treatments = [tuple(str(row[f"factor.{name}"]) for name in varied) for row in known]
        others = [
            tuple(str(row[f"factor.{name}"]) for name in varied if name != factor) for row in known
        ]
        sides = tuple(
            [str(row[f"factor.{factor}"]) == str(contrast[key]) for row in known]
            for key in ("level", "baseline")
        )
        where = f"{factor} {contrast['level']} / {contrast['baseline']}: {contrast['response']}"
        limits = ratio(
            [row[contrast["response"]] for row in known], [row["block"] for row in known],
            treatments, sides, others, contrast["interval_level"],
        )  # fmt: skip
        found = limits.get(f"{contrast['degrees']:.6f}")
        if found is None:
            differing.append(f"{where}: degrees {contrast['degrees']}, computed {list(limits)}")
            continue
        for name, computed in zip(("estimate", "low", "high"), found, strict=True):
            differing.compare(where, name, contrast[name], computed)
        compared += 1
    return compared


def used_rows(folder: Path, differing: Differing) -> Iterator[dict[str, Any]]:
    """Yield the levels, the block and the recomputed numbers of each used run, and compare them."""
    summary = pl.read_parquet(folder / "summary.parquet", glob=False)
    for stored in summary.filter("used").iter_rows(named=True):
        computed = run_of(folder / "runs" / f"{stored['run']}-{stored['attempt']}", stored)
        missing = computed["expected"] - computed["received_unique"] - computed["failed"]
        undelivered = stored.get("undelivered") or 0
        differing.compare(stored["run"], "lost", stored["lost"], missing - undelivered)
        for name, value in computed.items():
            differing.compare(stored["run"], name, stored[name], value)
        levels = {name: stored[name] for name in stored if name.startswith("factor.")}
        yield {**levels, "block": stored["block"], **computed}


def recompute(folder: Path) -> tuple[Differing, int, int]:
    """Return the differing numbers, the number of runs and the number of ratios."""
    differing = Differing()
    rows = list(used_rows(folder, differing))
    return differing, len(rows), compare_ratios(folder, rows, differing)


if __name__ == "__main__":
    problems, run_count, ratio_count = recompute(Path(sys.argv[1]))
    print("\n".join(problems))
    print(f"{run_count} runs and {ratio_count} ratios: {problems.equal} numbers are equal, "
          f"{len(problems)} differ.")  # fmt: skip
    sys.exit(bool(problems))
