"""Test calls to absent, lying, untrusted or dying servers.

The verdict must be clear and the counts complete, without leftovers. `make test-full` runs the
Python cells of middleware that supports only calls. `make test-all` also tests the death of a
server with every cell.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest
import trustme

from tests.end_to_end.conftest import struck_in_the_window
from wattwire.catalog import Catalog
from wattwire.model.errors import EXIT_NOTHING_USABLE
from wattwire.store import Campaign

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
CALLS = ("grpc", "rest", "rpc")
CALLS_OF_A_LIAR = 20
SOON = ("--set", "plan.ready_timeout_s=10")
"""Timeout for clients that get no answer. A busy machine needs seconds to load their libraries."""
PATIENT = ("--set", "timeout_ms=5000")
"""Timeout for answered calls: the host may be suspended for longer than the study's timeout."""
STUDY = """
title = "Calls"
[factors]
payload_bytes = [64]
[fixed]
middleware = "{middleware}"
language = "{language}"
pattern = "service"
loop = "closed"
payload_encoding = "text"
count = {count}
timeout_ms = 300
[plan]
blocks = 1
warmup_calls = 0
controls = false
baseline_s = 0.05
quiet_ms = 30
linger_ms = 100
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
    """Return a function that writes a study of calls to a server of the same language."""

    def written(middleware, language="python", count=CALLS_OF_A_LIAR):
        path = tmp_path / "calls.toml"
        path.write_text(STUDY.format(middleware=middleware, language=language, count=count))
        return path

    return written


@pytest.fixture
def lies(cli, study, tmp_path):
    """Return a function that runs calls to a lying server and returns the output and the row."""

    def told(middleware, lie, *more, client="python", **environment):
        root = tmp_path / "more"
        language = root / "languages" / "liar" / "language.toml"
        language.parent.mkdir(parents=True)
        env = ", ".join(f'{k} = "{v}"' for k, v in {"LIE": lie, **environment}.items())
        language.write_text(
            'title = "Liar"\nrequires = []\n[run]\n'
            f'argv = ["{{python}}", "{{source}}/liar.py"]\nenv = {{ {env} }}\n'
        )
        cell = root / "middleware" / middleware / "liar"
        cell.mkdir(parents=True)
        shutil.copy(HERE / "liar.py", cell)
        honest = Catalog().cell(f"{middleware}/{client}").document
        (cell / "node.toml").write_text(
            f"patterns = {json.dumps(honest['patterns'])}\n"
            f"capabilities = {json.dumps(honest['capabilities'])}\n"
            + (f'wire = "{honest["wire"]}"\n' if "wire" in honest else "")
        )
        result = cli(
            "run", study(middleware, client), "--campaign", tmp_path / "c", "--plain",
            "--no-report", "--set", "fixed.server_language=liar", *PATIENT, *more,
            WATTWIRE_PATH=str(root),
        )  # fmt: skip
        if result.code == 3:
            pytest.skip(result.err)  # missing toolchain or package
        return result, row(tmp_path / "c")

    return told


def row(folder):
    campaign = Campaign(folder)
    try:
        (attempt,) = campaign.journal.attempts()
    finally:
        campaign.close()
    counts = pl.read_parquet(folder / "summary.parquet", glob=False).row(0, named=True)
    return {**counts, "outcome": attempt.outcome, "verdict": attempt.verdict}


def some(*chosen, middleware=CALLS, ways=("",)):
    """Return all pairs of a middleware and a lie.

    Pairs that are not `chosen` run only with the full matrix.
    """
    pairs = [(name, way) for name in middleware for way in ways]
    return [
        pytest.param(*pair, marks=() if pair in chosen else pytest.mark.matrix) for pair in pairs
    ]


@pytest.mark.parametrize(
    "middleware, lie", some(("rest", "flip"), middleware=("rest", "rpc"), ways=("flip",))
)
def test_a_reply_of_the_wrong_content_makes_a_run_that_is_not_used(
    lies, nothing_left, middleware, lie
):
    result, found = lies(middleware, lie)
    assert result.code == 4, result.out + result.err
    assert "0 of 1 design run is valid" in result.out
    assert (found["verdict"], found["corrupt"], found["sent"]) == ("invalid", CALLS_OF_A_LIAR,
                                                                   CALLS_OF_A_LIAR)  # fmt: skip
    assert f"{CALLS_OF_A_LIAR} message" in result.out and "corrupt" in result.out


WEB_CLIENTS = ("cpp", "csharp", "go", "java", "javascript", "php", "python", "ruby", "rust")
SPEAK_OTHERWISE = {("rpc", "go"), ("rpc", "java")}
"""net/rpc is not HTTP; JAX-WS requires SOAP, which the liar's probes do not speak."""


COUNTS = ("verdict", "outcome", "sent", "received_unique", "failed", "lost", "corrupt")


@pytest.mark.parametrize(
    "lie, middleware, client",
    [
        pytest.param(lie, *param.values, marks=() if (lie, *param.values) in {
            ("gateway", "rest", "javascript"), ("error", "rpc", "python"),
            ("object", "rpc", "python")} else pytest.mark.matrix)
        for lie in ("error", "gateway", "object")
        for param in some(middleware=("rest", "rpc"), ways=WEB_CLIENTS)
        if param.values not in SPEAK_OTHERWISE and (lie, param.values[0]) != ("object", "rest")
    ],
)  # fmt: skip
def test_a_call_answered_with_an_error_failed_and_its_run_counts(
    lies, nothing_left, lie, middleware, client
):
    result, found = lies(middleware, lie, client=client)
    assert result.code == 0, result.out + result.err
    assert "1 of 1 design run is valid" in result.out
    assert f"sent {CALLS_OF_A_LIAR}, failed {CALLS_OF_A_LIAR}, lost 0" in result.out
    assert [found[name] for name in COUNTS] == ["valid", "completed", CALLS_OF_A_LIAR, 0,
                                                CALLS_OF_A_LIAR, 0, 0]  # fmt: skip
    assert found["latency_p50_us"] is None


def test_refusing_every_second_call_at_once_makes_no_stack_fast(lies, nothing_left, tmp_path, cli):
    """Failed calls count as infinite in latency quantiles, and the page names the treatment."""
    result, found = lies("rest", "half")
    assert result.code == 0, result.out + result.err
    half = CALLS_OF_A_LIAR // 2
    counts = [found[name] for name in COUNTS]
    assert counts == ["valid", "completed", CALLS_OF_A_LIAR, half, half, 0, 0]
    assert found["latency_p50_us"] > 0 and found["latency_p90_us"] is None
    shown = cli("show", tmp_path / "c", "1").out
    assert re.search(rf"calls failed +{half}\b", shown), shown
    assert cli("report", tmp_path / "c").code == 0
    named = f"Calls failed: all runs ({half}, 50 %)."
    assert named in (tmp_path / "c" / "report" / "answer.txt").read_text()
    page = (tmp_path / "c" / "report" / "index.html").read_text()
    assert page.count(named) > 2, "first line, counts, threats"


@pytest.mark.parametrize(
    "middleware, lie",
    some(("grpc", "nowhere"), ("rest", "silence"), ways=("nowhere", "silence")),
)
def test_a_wrong_port_is_a_result_with_the_librarys_reason(lies, nothing_left, middleware, lie):
    result, found = lies(middleware, lie, *SOON)
    assert (found["outcome"], found["sent"], found["lost"]) == ("died", 0, 0)
    assert "client-0 ended with code 4 (no reply to a probe within ready_timeout_ms" in result.out
    reason = {"nowhere": "refused", "silence": "closed|reset|Socket closed"}[lie]
    assert re.search(rf"; last error: .*({reason})", result.out)


@pytest.mark.parametrize("middleware", CALLS)
def test_a_certificate_of_another_authority_is_a_result_that_says_so(
    lies, nothing_left, tmp_path, middleware
):
    """`tls-refused` (C-35) tests expired certificates and certificates of another host."""
    folder = tmp_path / "shown"
    folder.mkdir()
    shown = trustme.CA().issue_cert("127.0.0.1")
    shown.cert_chain_pems[0].write_to_path(str(folder / "certificate.pem"))
    shown.private_key_pem.write_to_path(str(folder / "key.pem"))
    tls = ("--set", "fixed.settings.tls=true")
    result, found = lies(middleware, "tls", *SOON, *tls, LIE_CERTIFICATE=str(folder))
    assert (found["outcome"], found["sent"], found["lost"]) == ("died", 0, 0)
    assert "client-0 ended with code 4" in result.out
    assert "CERTIFICATE_VERIFY_FAILED" in result.out


NAMES = [name for name in Catalog().cells if name.split("/")[0] in CALLS]


@pytest.mark.parametrize(
    "cell",
    [
        pytest.param(name, marks=() if name.endswith("/python") else pytest.mark.matrix)
        for name in NAMES
    ],
)
def test_a_server_that_is_killed_is_a_result_and_no_call_is_forgotten(
    cli, study, tmp_path, nothing_left, cell
):
    middleware, _, language = cell.partition("/")
    count = 2_000 if language == "python" else 10_000
    written = study(middleware, language, count)
    code, killed = struck_in_the_window(cli, written, tmp_path / "c", "server-0")
    assert code == 0 and killed
    found = row(tmp_path / "c")
    assert (found["outcome"], found["verdict"]) == ("died", "valid")
    assert found["sent"] == count == found["received_unique"] + found["failed"] + found["lost"]
    assert found["failed"] + found["lost"] > 0


def test_what_a_killed_client_sent_is_not_known_and_is_no_zero(cli, study, tmp_path, nothing_left):
    written = study("rest", "python", 20_000)
    code, killed = struck_in_the_window(cli, written, tmp_path / "c", "client-0")
    assert code == EXIT_NOTHING_USABLE and killed, code
    found = row(tmp_path / "c")
    assert found["outcome"] == "died"
    assert {found[name] for name in ("sent", "expected", "received_unique", "lost")} == {None}
    assert found["cpu_us_per_message"] is None
    shown = cli("show", tmp_path / "c", "1").out
    assert re.search("unknown: a sender ended without records", shown), shown
    cli("report", tmp_path / "c")
    told = (tmp_path / "c" / "report" / "answer.txt").read_text()
    assert "left no record of sent messages" in told, told
    assert "before anything was sent" not in told
