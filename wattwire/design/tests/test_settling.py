"""Test the settling runs: several for each client and server program, before all blocks."""

from wattwire.design import make_plan, piloted
from wattwire.model.study import Plan
from wattwire.model.treatment import Treatment
from wattwire.model.warm_up import SETTLING, SETTLING_RUNS


def treatments(*levels, **fixed):
    base = {"loop": "closed", "clients": 1, "pattern": "service", "middleware": "rpc", **fixed}
    return [Treatment.of(one, {k: v for k, v in base.items() if k not in one}) for one in levels]


def test_one_treatment_of_each_cell_is_enough_the_one_with_fewest_clients():
    of = treatments(
        *({"language": language, "clients": clients, "payload_bytes": size}
          for language in ("go", "java") for clients in (4, 1) for size in (64, 1024))
    )  # fmt: skip
    chosen = piloted(of, Plan())
    assert [(t["language"], t["clients"], t["payload_bytes"]) for t in chosen] == [
        ("go", 1, 64), ("java", 1, 64),
    ]  # fmt: skip


def test_every_client_and_every_server_is_in_one_of_them():
    languages = ("cpp", "go", "java")
    of = treatments(
        *({"language": a, "server_language": b} for a in languages for b in languages if a != b)
    )
    chosen = piloted(of, Plan())
    assert {t["language"] for t in chosen} == {t["server_language"] for t in chosen}
    assert {t["language"] for t in chosen} == set(languages)
    assert len(chosen) < len(of)


def test_the_cells_of_servers_are_other_programs():
    of = treatments(*({"server_cell": f"rpc/{name}"} for name in "abb"), cell="rpc/a")
    assert [t["server_cell"] for t in piloted(of, Plan())] == ["rpc/a", "rpc/b"]


def test_settings_and_variants_are_other_programs():
    levels = [{"settings.tls": tls, "variant": name} for tls in (False, True) for name in "ab"]
    of = treatments(*levels, language="go")
    assert len(piloted(of, Plan())) == 4


def test_open_loops_and_studies_that_say_their_warm_up_have_none():
    closed = treatments({"language": "go"})
    assert piloted(treatments({"language": "go"}, loop="open"), Plan()) == []
    for calls in (0, 200):
        assert piloted(closed, Plan(warmup_calls=calls)) == []
        assert all(run.control != SETTLING for run in make_plan(closed, Plan(warmup_calls=calls)))


def test_rounds_of_settling_runs_come_before_the_blocks_and_change_nothing_in_them():
    of = treatments({"language": "go"}, {"language": "java"})
    runs = make_plan(of, Plan(blocks=2, primary="language"))
    without = make_plan(of, Plan(blocks=2, primary="language", warmup_calls=0))
    first, rest = runs[: 2 * SETTLING_RUNS], runs[2 * SETTLING_RUNS :]
    assert [run.run for run in first] == [
        f"s{turn:02d}-p{place:03d}" for turn in range(1, SETTLING_RUNS + 1) for place in (1, 2)
    ]
    assert {run.control for run in first} == {SETTLING}
    assert first[0].label().endswith(" (settling run)")
    assert {run.block for run in first} == {0}
    for turn in range(SETTLING_RUNS):
        assert len({run.treatment.key for run in first[2 * turn : 2 * turn + 2]}) == 2
    assert [(r.run, r.treatment, r.control) for r in rest] == [
        (r.run, r.treatment, r.control) for r in without
    ]
