"""Test the plan: all treatments in each block, seeded random order."""

from collections import Counter
from itertools import pairwise

import pytest

from wattwire.design import expand, make_plan
from wattwire.model.errors import UsageError
from wattwire.model.study import Plan, parse_study

DOCUMENT = {
    "factors": {"language": ["a", "b"], "clients": [1, 2, 3], "pattern": ["topic", "service"]},
    "fixed": {"middleware": "loopback"},
}


def treatments(**changes):
    study = parse_study("s", {**DOCUMENT, **changes}, "s.toml")
    return [t for t, reason in expand(study) if reason is None]


def own(runs):
    return [run for run in runs if not run.control]


def test_each_block_holds_every_treatment_once():
    runs = own(make_plan(treatments(), Plan(blocks=4, seed=7, primary="language")))
    for block in range(1, 5):
        keys = [r.treatment.key for r in runs if r.block == block]
        assert len(keys) == len(set(keys)) == 12


def test_all_pairs_of_treatments_are_neighbours_equally_often():
    runs = own(make_plan(treatments(), Plan(blocks=600, seed=1, primary="language")))
    pairs = Counter(
        frozenset((first.treatment, second.treatment))
        for first, second in pairwise(runs)
        if first.block == second.block
    )
    assert len(pairs) == 66
    # 11 pairs of neighbours in each of 600 blocks; 3.5 standard deviations are 35.
    assert all(65 <= count <= 135 for count in pairs.values())


def test_the_seed_decides_the_order_and_more_blocks_change_nothing_before():
    short = make_plan(treatments(), Plan(blocks=2, seed=5, primary="language"))
    again = make_plan(treatments(), Plan(blocks=2, seed=5, primary="language"))
    longer = make_plan(treatments(), Plan(blocks=6, seed=5, primary="language"))
    other = make_plan(treatments(), Plan(blocks=2, seed=6, primary="language"))
    assert short == again == longer[: len(short)]
    assert short != other


def test_both_orders_of_a_pair_occur():
    runs = own(make_plan(treatments(), Plan(blocks=20, seed=1, primary="language")))
    first = [r.treatment["language"] for r in runs[0::2]]
    assert 0.3 < first.count("a") / len(first) < 0.7


def test_each_block_holds_control_runs_of_one_treatment_at_random_positions():
    kept = treatments()
    runs = make_plan(kept, Plan(blocks=12, seed=3, primary="language"))
    for block in range(1, 13):
        controls = [r for r in runs if r.block == block and r.control]
        assert sorted(r.control for r in controls) == ["a", "b", "unsampled"]
        assert {r.treatment for r in controls} == {kept[0]}
    for control in ("a", "b", "unsampled"):
        assert len({r.position for r in runs if r.control == control}) > 6
    assert (
        len({tuple(r.control for r in runs if r.block == b and r.control) for b in range(13)}) > 3
    )


def test_without_controls_the_order_of_the_others_is_the_same():
    with_them = own(make_plan(treatments(), Plan(blocks=1, seed=3, primary="language")))
    without = make_plan(treatments(), Plan(blocks=1, seed=3, primary="language", controls=False))
    assert [r.treatment for r in with_them] == [r.treatment for r in without]


def test_each_run_knows_its_predecessor():
    runs = make_plan(treatments(), Plan(blocks=2))
    assert runs[0].predecessor == ""
    assert all(b.predecessor == a.run for a, b in pairwise(runs))
    assert len({r.run for r in runs}) == len(runs)


def test_excluded_treatments_keep_their_reason():
    study = parse_study(
        "s",
        {**DOCUMENT, "exclude": {"treatments": [{"clients": 3, "because": "too many"}]}},
        "s.toml",
    )
    reasons = [reason for t, reason in expand(study) if t["clients"] == 3]
    assert reasons == ["too many"] * 4


def test_a_study_that_excludes_everything_is_refused():
    with pytest.raises(UsageError, match="there is nothing to run"):
        treatments(exclude={"treatments": [{"because": "all"}]})


def test_runs_that_count_system_calls_come_after_everything_that_is_timed():
    kept = treatments()
    plain = make_plan(kept, Plan(blocks=3, seed=3, primary="language"))
    runs = make_plan(kept, Plan(blocks=3, seed=3, primary="language", syscall_runs=2))
    assert runs[: len(plain)] == plain
    added = runs[len(plain) :]
    assert {r.control for r in added} == {"syscalls"}
    assert sorted(r.treatment.key for r in added) == sorted(2 * [t.key for t in kept])
    assert {r.block for r in added} == {4, 5}


def test_of_a_product_only_what_is_included_is_designed():
    wanted = [{"language": "a", "clients": 1}, {"language": "b", "pattern": "topic"}]
    found = treatments(include={"treatments": wanted})
    levels = {(t["language"], t["clients"], t["pattern"]) for t in found}
    assert levels == {
        ("a", 1, "topic"), ("a", 1, "service"),
        ("b", 1, "topic"), ("b", 2, "topic"), ("b", 3, "topic"),
    }  # fmt: skip


def test_a_list_of_an_entry_stands_for_each_of_its_levels():
    wanted = [{"language": ["a", "b"], "clients": [1, 3], "pattern": "topic"}]
    included = treatments(include={"treatments": wanted})
    assert [(t["language"], t["clients"], t["pattern"]) for t in included] == [
        ("a", 1, "topic"), ("a", 3, "topic"), ("b", 1, "topic"), ("b", 3, "topic"),
    ]  # fmt: skip


def test_what_is_included_may_still_be_excluded():
    study = parse_study(
        "s",
        {
            **DOCUMENT,
            "include": {"treatments": [{"language": "a"}]},
            "exclude": {"treatments": [{"clients": 3, "because": "too many"}]},
        },
        "s.toml",
    )
    reasons = [reason for _, reason in expand(study)]
    assert (len(reasons), reasons.count("too many")) == (6, 2)


def test_a_study_that_includes_nothing_that_there_is_is_refused():
    with pytest.raises(UsageError, match="there is nothing to run: no treatment matches an entry"):
        treatments(include={"treatments": [{"clients": 4}]})
    with pytest.raises(UsageError, match="include.treatments"):
        treatments(include={"treatments": [{"client": 1}]})


VARIANTS = {"base": {}, "head": {}}


def test_the_variants_of_a_treatment_are_neighbours_in_both_orders():
    factors = {**DOCUMENT["factors"], "variant": ["base", "head"]}
    kept = treatments(factors=factors, variants=VARIANTS)
    runs = make_plan(kept, Plan(blocks=30, seed=1, primary="variant"))
    orders, first_treatments = Counter(), set()
    for block in range(1, 31):
        runs_of_block = [run for run in runs if run.block == block]
        in_order = own(runs_of_block)
        assert len({run.treatment for run in in_order}) == 24
        for first, second in zip(in_order[0::2], in_order[1::2], strict=True):
            assert second.position == first.position + 1
            assert dict(first.treatment.varied) | {"variant": ""} == (
                dict(second.treatment.varied) | {"variant": ""}
            )
            orders[first.treatment["variant"]] += 1
        first_treatments.add(in_order[0].treatment.label().replace("base", "head"))
        places = {run.control: run.position for run in runs_of_block if run.control}
        assert abs(places["a"] - places["b"]) == 1
    # 360 pairs, with the base first in half of them; 3.5 standard deviations are 33.
    assert 147 <= orders["base"] <= 213
    assert len(first_treatments) > 6


def test_each_profiled_run_is_next_to_its_timed_run_and_the_order_of_the_others_is_the_same():
    kept = treatments()
    profiled = {t.key for t in kept if t["language"] == "a"}
    plan = {"blocks": 30, "seed": 3, "primary": "language"}
    plain = make_plan(kept, Plan(**plan))
    runs = make_plan(kept, Plan(**plan, layer_runs=20), profiled=profiled)
    others = [r for r in runs if r.control != "layers"]
    rows = [(r.block, r.treatment, r.control) for r in plain]
    assert [(r.block, r.treatment, r.control) for r in others] == rows
    twins = [r for r in runs if r.control == "layers"]
    assert Counter((r.block, r.treatment.key) for r in twins) == {
        (block, key): 1 for block in range(1, 21) for key in profiled
    }
    firsts = 0
    for at, twin in enumerate(runs):
        if twin.control != "layers":
            continue
        near = {step: runs[at + step] for step in (-1, 1) if 0 <= at + step < len(runs)}
        sides = [
            step
            for step, run in near.items()
            if (run.block, run.treatment, run.control) == (twin.block, twin.treatment, "")
        ]
        assert len(sides) == 1
        firsts += sides == [1]
    assert 0.3 < firsts / len(twins) < 0.7
    assert all(b.predecessor == a.run for a, b in pairwise(runs))


@pytest.mark.parametrize(("names", "separated"), [(("base", "head"), 0), (("base", "x", "y"), 1)])
def test_only_the_recording_of_an_inner_variant_separates_variants(names, separated):
    variants = {name: {} for name in names}
    factors = {"language": ["a"], "pattern": ["topic"], "variant": list(names)}
    kept = treatments(factors=factors, variants=variants)
    keys = {treatment.key for treatment in kept}
    plan = Plan(blocks=20, primary="variant", controls=False, layer_runs=20)
    runs = make_plan(kept, plan, profiled=keys)
    for block in range(1, 21):
        kinds = [run.control for run in runs if run.block == block]
        places = [place for place, kind in enumerate(kinds) if not kind]
        assert sum(b - a - 1 for a, b in pairwise(places)) == separated


def test_without_layer_runs_or_profiled_treatments_the_plan_is_the_same():
    kept, keys = treatments(), {t.key for t in treatments()}
    plain = make_plan(kept, Plan(blocks=2))
    assert make_plan(kept, Plan(blocks=2), profiled=keys) == plain
    assert make_plan(kept, Plan(blocks=2, layer_runs=2)) == plain


@pytest.mark.parametrize("value", [-1, 3, 1.5, "all"])
def test_a_number_of_layer_runs_that_no_block_can_hold_is_refused(value):
    plan = {"blocks": 2, "layer_runs": value}
    with pytest.raises(UsageError, match=r"plan\.layer_runs.*allowed"):
        parse_study("s", {**DOCUMENT, "plan": plan}, "s.toml")
