"""Test pipelines with faults: losses at one hop, dead or hung nodes, bad input, and their length.

Each fault ends with a verdict that names the node and its hop, and with counts that add up.
"""

from __future__ import annotations

import json
import shutil
import signal
import time
from functools import partial
from pathlib import Path

import polars as pl
import pytest
import tomllib

from tests.end_to_end.conftest import marked_processes, struck_in_the_window, tokens_below
from tests.end_to_end.random_kills import (
    PIPELINE,
    PIPELINE_KINDS,
    Seen,
    Setting,
    kill_many,
    kill_once,
)
from wattwire.catalog import Catalog, home
from wattwire.model.errors import EXIT_NOTHING_USABLE, UsageError
from wattwire.model.study import parse_study
from wattwire.run.resolve_cells import prepare

pytestmark = [pytest.mark.slow, pytest.mark.quiet]

HERE = Path(__file__).parent
KILLS = 59
"""Kills of each kind; without a failure, fewer than 5 % fail (95 % confidence)."""
KILLS_TIMEOUT_S = 3 * 3600
STUDY = """
title = "Pipelines"
[factors]
{factors}
[fixed]
cell = "{cell}"
pattern = "pipeline"
rate_hz = 100
[plan]
blocks = {blocks}
controls = false
duration_s = {duration_s}
baseline_s = 0.05
quiet_ms = 80
linger_ms = 200
retries = 0
quiet_wait_s = 0.0
[validity]
other_load_max = 10.0
steal_max = 10.0
missed_ticks_max = 1.1
stall_max_ms = 60000.0
"""


@pytest.fixture
def study(tmp_path):
    """Return a function that writes a study of pipelines."""

    def written(factors="nodes = [3]", cell="loopback/python", blocks=1, duration_s=0.4):
        path = tmp_path / "pipeline.toml"
        path.write_text(
            STUDY.format(factors=factors, cell=cell, blocks=blocks, duration_s=duration_s)
        )
        return path

    return written


def rows_of(campaign: Path) -> list[dict]:
    """Return the summary rows of a campaign, each with the outcome's detail."""
    rows = pl.read_parquet(campaign / "summary.parquet", glob=False).sort("run").to_dicts()
    for row in rows:
        document = json.loads((run_folder(campaign, row) / "run.json").read_text())
        row["detail"] = document["outcome_detail"]
    return rows


def run_folder(campaign: Path, row: dict) -> Path:
    return campaign / "runs" / f"{row['run']}-{row['attempt']}"


def lost_by_hop(row: dict) -> list[float | None]:
    """Return the losses of each hop, from hop 1."""
    hops = sum(name.startswith("lost.hop.") for name in row)
    return [row[f"lost.hop.{hop}"] for hop in range(1, hops + 1)]


def assert_adds_up(row: dict) -> None:
    known = [lost for lost in lost_by_hop(row) if lost is not None]
    assert row["sent"] == row["received_unique"] + sum(known), row
    assert row["lost"] == sum(known), row


def assert_resumes(cli, campaign: Path, expected_code: int = 0) -> None:
    """Assert that no process is left and that a resumed campaign has no open attempt."""
    deadline_s = time.monotonic() + 60
    tokens = tokens_below(campaign.parent)
    while marked_processes(tokens) and time.monotonic() < deadline_s:
        time.sleep(0.05)  # the agent detects the end of its input and ends its processes
    assert marked_processes(tokens) == []
    again = cli("run", "--resume", campaign, "--plain", "--no-report")
    assert again.code == expected_code, again.out + again.err
    assert not list((campaign / "runs").glob(".*"))


# -- losses at one hop ---------------------------------------------------------------------------


@pytest.fixture
def lossy(tmp_path):
    """Return the environment of the cell lossy/python: udp/python with a proxy at one hop."""
    root = tmp_path / "roots" / "middleware" / "lossy"
    udp = home() / "middleware" / "udp"
    shutil.copytree(udp / "python", root / "python" / "udp")
    shutil.copy(udp / "python" / "node.toml", root / "python")
    (root / "python" / "udp" / "node.toml").unlink()
    shutil.copy(HERE / "lossy_node.py", root / "python" / "node.py")
    shutil.copy(HERE / "proxy.py", root / "python")
    (root / "middleware.toml").write_text(
        (udp / "middleware.toml").read_text()
        + '[settings.lossy_hop]\ntype = "integer"\ndefault = 0\nminimum = 0\n'
        + 'summary = "the hop with the proxy; 0: none"\n'
    )
    return {"WATTWIRE_PATH": str(tmp_path / "roots")}


def counters_of(campaign: Path, row: dict) -> list[set[int]]:
    """Return the counters in the records of each node, in the order of hops."""
    messages = pl.read_parquet(run_folder(campaign, row) / "messages.parquet", glob=False)
    nodes = range(messages["node"].max() + 1)
    return [set(messages.filter(pl.col("node") == node)["counter"]) for node in nodes]


@pytest.mark.parametrize(
    ("nodes", "hops", "seeds"),
    [(4, [0, 2], 2), pytest.param(5, [0, 1, 2, 3, 4], 20, marks=pytest.mark.matrix)],
)
def test_messages_that_a_proxy_drops_are_lost_at_its_hop_and_at_no_other(
    cli, study, lossy, tmp_path, nothing_left, nodes, hops, seeds
):
    written = study(f'"settings.lossy_hop" = {hops}', "lossy/python", seeds)
    result = cli("run", written, "--campaign", tmp_path / "c", "--plain", "--no-report",
                 "--set", f"fixed.nodes={nodes}", **lossy)  # fmt: skip
    assert result.code == 0, result.out + result.err
    rows = rows_of(tmp_path / "c")
    assert len(rows) == len(hops) * seeds
    dropped_messages = 0
    for row in rows:
        hop = row["factor.settings.lossy_hop"]
        logs = list(run_folder(tmp_path / "c", row).glob("out/*/proxy.json"))
        dropped = [set(json.loads(log.read_text())["dropped"]) for log in logs]
        assert len(dropped) == (hop > 0)
        expected = [len(dropped[0]) if at == hop else 0 for at in range(1, nodes)]
        assert lost_by_hop(row) == expected, row
        assert (row["outcome"], row["sent"]) == ("completed", 40)
        assert_adds_up(row)
        recorded = counters_of(tmp_path / "c", row)
        for at in range(1, nodes):
            assert recorded[at - 1] - recorded[at] == (dropped[0] if at == hop else set())
        dropped_messages += sum(map(len, dropped))
    assert dropped_messages > 0


# -- nodes that die or hang ----------------------------------------------------------------------

MORE_CELLS = ("udp/python", "tcp/python", "loopback/cpp", "mqtt/python")


@pytest.mark.parametrize(
    ("cell", "number", "outcome"),
    [
        ("loopback/python", signal.SIGKILL, "died"),
        *(pytest.param(cell, signal.SIGKILL, "died", marks=pytest.mark.matrix)
          for cell in MORE_CELLS),
        *(pytest.param(cell, signal.SIGSTOP, "timed_out", marks=pytest.mark.matrix)
          for cell in ("loopback/python", "tcp/python", "udp/python")),
    ],
)  # fmt: skip
def test_the_losses_around_a_dead_or_hung_relay_are_one_number(
    cli, study, tmp_path, nothing_left, cell, number, outcome
):
    written = study("nodes = [5]", cell, duration_s=1.0)
    code, struck = struck_in_the_window(cli, written, tmp_path / "c", "relay-1", number, 0.4)
    assert (code, len(struck)) == (0, 1)
    (row,) = rows_of(tmp_path / "c")
    assert (row["outcome"], row["verdict"]) == (outcome, "valid")
    assert row["detail"].startswith("relay-1 (hop 2) "), row["detail"]
    lost = lost_by_hop(row)
    assert lost[1] is None and None not in (lost[0], lost[2], lost[3]), lost
    assert lost[2] > 0 and row["received_unique"] > 0
    assert_adds_up(row)
    recorded = counters_of(tmp_path / "c", row)
    assert recorded[2] == set() and recorded[4] <= recorded[3] <= recorded[1]
    assert_resumes(cli, tmp_path / "c")


@pytest.mark.matrix
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_all_messages_of_a_dead_or_hung_sink_are_lost_at_the_last_hop(
    cli, study, tmp_path, nothing_left, number
):
    written = study("nodes = [4]", duration_s=1.0)
    code, struck = struck_in_the_window(cli, written, tmp_path / "c", "sink-0", number, 0.4)
    assert (code, len(struck)) == (0, 1)
    (row,) = rows_of(tmp_path / "c")
    assert row["outcome"] == ("died" if number == signal.SIGKILL else "timed_out")
    assert row["detail"].startswith("sink-0 (hop 3) "), row["detail"]
    assert row["received_unique"] == 0 < lost_by_hop(row)[2]
    assert_adds_up(row)
    assert_resumes(cli, tmp_path / "c")


@pytest.mark.parametrize(
    ("number", "end"),
    [
        (signal.SIGKILL, "was killed by signal 9"),
        pytest.param(signal.SIGSTOP, "did not finish in the window", marks=pytest.mark.matrix),
    ],
)
def test_what_a_dead_or_hung_source_sent_is_not_known_and_no_hop_lost_zero(
    cli, study, tmp_path, nothing_left, number, end
):
    written = study("nodes = [4]", duration_s=1.0)
    code, struck = struck_in_the_window(cli, written, tmp_path / "c", "source-0", number, 0.4)
    assert (code, len(struck)) == (EXIT_NOTHING_USABLE, 1)
    (row,) = rows_of(tmp_path / "c")
    assert row["outcome"] == ("died" if number == signal.SIGKILL else "timed_out")
    assert row["detail"] == f"source-0 (hop 0) {end}"
    assert {row["sent"], row["lost"], *lost_by_hop(row)} == {None}
    assert_resumes(cli, tmp_path / "c", EXIT_NOTHING_USABLE)


@pytest.mark.parametrize(
    ("crash", "outcome"),
    [
        ("source@drain", "died"),
        ("relay@window", "died"),
        ("sink@ready", "died"),
        ("agent@window", "completed"),
        ("controller@window", "completed"),
        *(pytest.param(f"{role}@{point}", "died", marks=pytest.mark.matrix)
          for role in ("source", "relay", "sink") for point in ("ready", "window", "drain")),
        *(pytest.param(f"{victim}@{point}", "completed", marks=pytest.mark.matrix)
          for victim in ("agent", "controller")
          for point in ("ready", "window", "drain", "convert", "commit")),
    ],
)  # fmt: skip
def test_a_kill_at_a_crash_point_costs_at_most_the_current_attempt(
    cli, study, tmp_path, nothing_left, crash, outcome
):
    written, campaign = study(), tmp_path / "c"
    victim = crash.partition("@")[0]
    killed = cli("run", written, "--campaign", campaign, "--plain", "--no-report",
                 "--set", "plan.retries=1", WATTWIRE_CRASH=crash)  # fmt: skip
    # The only run has no counts if the source left no records or a node died before READY.
    maybe_unusable = outcome == "died" and (victim == "source" or crash.endswith("@ready"))
    code = 0 if victim == "controller" else killed.code
    if victim == "controller":
        assert killed.code == -signal.SIGKILL
    else:
        assert code == 0 or (code == EXIT_NOTHING_USABLE and maybe_unusable), killed.err
    assert_resumes(cli, campaign, code)
    *failed, row = rows_of(campaign)
    assert [earlier["verdict"] for earlier in failed] in ([], ["failed"] * (victim == "agent"))
    assert (row["outcome"], row["verdict"]) == (outcome, "valid")
    if outcome == "completed":
        assert (row["sent"], row["received_unique"], lost_by_hop(row)) == (40, 40, [0, 0])
    else:
        assert f"{victim}-0 (hop " in row["detail"], row["detail"]


@pytest.mark.matrix
@pytest.mark.timeout(KILLS_TIMEOUT_S)
@pytest.mark.parametrize("kind", PIPELINE_KINDS)
def test_a_kill_at_a_random_time_loses_and_leaves_nothing(kind, tmp_path):
    kill = partial(kill_once, kind, Setting(study=PIPELINE))
    seen: list[Seen] = list(kill_many(kind, KILLS, kill, tmp_path, seed=11))
    assert len(seen) == KILLS
    assert [(kill.phase, kill.after_s, kill.problems) for kill in seen if kill.problems] == []


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "fault"),
    [(1, "found 1; allowed: 2 or more"), (65, "found 65; allowed: 64 or less")],
)
def test_a_pipeline_has_2_to_64_nodes(study, nodes, fault):
    document = tomllib.loads(study(f"nodes = [{nodes}]").read_text())
    with pytest.raises(UsageError, match=f"pipeline.toml: factors.nodes: {fault}"):
        parse_study("pipeline", document, "pipeline.toml")


def test_a_plan_skips_a_cell_without_pipelines_and_states_its_patterns(cli, study):
    written = study('cell = ["loopback/python", "tcp/go"]')
    written.write_text(written.read_text().replace('\ncell = "loopback/python"', ""))
    result = cli("plan", written)
    assert result.code == 0, result.err
    reason = "tcp/go does not support the pattern pipeline (supported: service, pingpong)"
    assert reason in " ".join(result.out.split()), result.out


@pytest.mark.parametrize(
    ("factor", "levels", "fixed", "reason"),
    [
        ("clients", [1, 2], {"nodes": 4},
         "clients = 2, but pattern pipeline does not use clients; allowed: 1. Remove clients, or "
         "use a pattern with clients: topic, service, action"),
        ("nodes", [3, 4], {"pattern": "topic"},
         "nodes = 4, but pattern topic does not use nodes; allowed: 3. Remove nodes, or use a "
         "pattern with nodes: pipeline"),
        ("server_language", ["python", "cpp"], {},
         "server_language = cpp, but pattern pipeline has no server. Remove server_language, or "
         "use a pattern with a server: service, action, pingpong"),
        ("loop", ["open", "closed"], {},
         "loop = closed, but pattern pipeline has no replies; allowed: open (C-11). Set loop = "
         "open, or use a pattern with replies: service, action, pingpong"),
    ],
)  # fmt: skip
def test_what_a_pattern_does_not_have_is_skipped_with_the_reason(factor, levels, fixed, reason):
    document = {
        "title": "T",
        "factors": {factor: levels},
        "fixed": {"cell": "loopback/python", "pattern": "pipeline", **fixed},
    }
    prepared = prepare(parse_study("t", document, "t.toml"), Catalog(), None)
    assert [text for _, text in prepared.skipped] == [reason]


@pytest.mark.parametrize(
    ("fault", "detail", "outcome"),
    [
        ("die_at", "relay-0 (hop 1) was killed by signal 9 before READY", "died"),
        pytest.param("hang_at", "relay-0 (hop 1) did not print READY in time", "timed_out",
                     marks=pytest.mark.matrix),
    ],
)  # fmt: skip
def test_a_chain_that_is_not_matched_names_the_hop(
    cli, study, tmp_path, nothing_left, fault, detail, outcome
):
    result = cli(
        "run", study(), "--campaign", tmp_path / "c", "--plain", "--no-report",
        "--set", f"settings.{fault}=before_ready", "--set", "settings.fault_role=relay",
        "--set", "plan.ready_timeout_s=10",
    )  # fmt: skip
    assert result.code == EXIT_NOTHING_USABLE, result.out + result.err
    (row,) = rows_of(tmp_path / "c")
    assert (row["outcome"], row["detail"]) == (outcome, detail)


# -- length --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "nodes"),
    [
        ("loopback/python", 23),
        *(pytest.param(cell, nodes, marks=pytest.mark.matrix)
          for cell, nodes in (("loopback/cpp", 64), ("udp/cpp", 64), ("loopback/python", 64))),
    ],
)  # fmt: skip
def test_a_long_chain_starts_matches_counts_and_ends(
    cli, study, tmp_path, nothing_left, cell, nodes
):
    result = cli("run", study(f"nodes = [{nodes}]", cell), "--campaign", tmp_path / "c",
                 "--plain", "--no-report")  # fmt: skip
    if result.code == 3:
        pytest.skip(result.err)  # missing toolchain
    assert result.code == 0, result.out + result.err
    (row,) = rows_of(tmp_path / "c")
    assert (row["outcome"], row["sent"], row["received_unique"]) == ("completed", 40, 40)
    assert lost_by_hop(row) == [0] * (nodes - 1)
