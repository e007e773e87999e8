"""Test which treatments are skipped before the first run, and the reasons."""

from __future__ import annotations

import pytest

from wattwire.catalog import Catalog
from wattwire.model.errors import MissingError, UsageError
from wattwire.model.study import parse_study
from wattwire.rig.builds import NotBuiltError
from wattwire.run.resolve_cells import prepare

LANGUAGE = 'title = "L"\n[build]\ncommands = []\n[run]\nargv = ["x"]\n'
NODE = """patterns = ["service"]
capabilities = ["encoding.bytes", "encoding.text", "pacing.kit", "loop.open", "loop.closed",
    "reply.echo", "reply.ack", "reply.literal", "literal", "async_client"]
"""


def left_out(folder, told_by, factor="payload_bytes", levels=(7, 8, 15, 16, 64), **fixed):
    """Return the reasons for skipped treatments, by their level of `factor`."""
    for path, text in {
        "languages/lang/language.toml": LANGUAGE,
        "middleware/mmm/middleware.toml": 'title = "M"\n[patterns.service]\n'
        + (f'replies_told_by = "{told_by}"\n' if told_by else ""),
        "middleware/mmm/lang/node.toml": NODE,
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    document = {
        "title": "T",
        "factors": {factor: list(levels)},
        "fixed": {"cell": "mmm/lang", "pattern": "service", "outstanding_max": 4} | fixed,
    }
    prepared = prepare(parse_study("t", document, "test"), Catalog([folder]), None)
    return {treatment[factor]: reason for treatment, reason in prepared.skipped}


def test_overlapping_calls_told_by_their_sequence_need_payloads_that_carry_it(tmp_path):
    found = left_out(tmp_path, "sequence")
    assert set(found) == {7}
    assert "mmm/lang matches replies to overlapping calls by their sequence number" in found[7]
    assert "a payload below 8 bytes does not contain" in found[7]
    assert set(left_out(tmp_path, "sequence", payload_encoding="text")) == {7, 8, 15}


@pytest.mark.parametrize(
    ("factor", "levels", "message"),
    [
        ("reply", ("echo", "ack", "literal"), "a literal reply does not contain"),
        ("literal", ("", "a sentence of more than sixteen"), "a literal payload does not contain"),
    ],
)
def test_literals_carry_no_sequence_however_long_they_are(tmp_path, factor, levels, message):
    found = left_out(tmp_path, "sequence", factor, levels, payload_bytes=64)
    assert list(found) == [levels[-1]] and message in found[levels[-1]]


@pytest.mark.parametrize(
    "fixed",
    [{"outstanding_max": 1}, {"loop": "closed"}, {"outstanding_max": 1, "reply": "literal"}],
)
def test_calls_one_after_the_other_are_left_in(tmp_path, fixed):
    assert left_out(tmp_path, "sequence", **fixed) == {}


def test_a_middleware_that_numbers_its_calls_takes_any_payload(tmp_path):
    assert left_out(tmp_path, None) == {}
    assert left_out(tmp_path, "number", reply="literal") == {}


def awaiting(folder, awaits, **factors):
    """Prepare a study of one existing cell that varies `factors` and has this `awaits` list."""
    left_out(folder, "sequence")
    fixed = {"middleware": "mmm", "language": "lang", "pattern": "service"}
    document = {
        "title": "T",
        "factors": factors,
        "fixed": {key: level for key, level in fixed.items() if key not in factors},
        "awaits": awaits,
    }
    return prepare(parse_study("t", document, "test"), Catalog([folder]), None)


def test_what_a_study_waits_for_is_skipped_with_its_name_until_it_comes(tmp_path):
    found = awaiting(tmp_path, ["nnn", "lang"], middleware=["mmm", "nnn"])
    assert [treatment["middleware"] for treatment in found.treatments] == ["mmm"]
    assert [reason for _, reason in found.skipped] == ["middleware nnn does not exist here yet"]


def test_where_all_is_awaited_nothing_can_be_run_and_each_name_is_told(tmp_path):
    with pytest.raises(
        MissingError, match="language go does not exist here yet; language php does not exist here"
    ):
        awaiting(tmp_path, ["go", "php"], language=["go", "php"])


def test_a_name_that_is_not_awaited_is_still_refused_as_unknown(tmp_path):
    with pytest.raises(UsageError, match='unknown middleware "nmm"'):
        awaiting(tmp_path, ["nnn"], middleware=["mmm", "nmm"])


def of_three_languages(folder, factors=None, **fixed):
    """Create a middleware in three languages: `one` and `two` share a wire format, `mute` does not.

    `one` does not support the setting `patience`. The factor is the language of the server, unless
    `factors` replaces it.
    """
    for path, text in {
        **{f"languages/{name}/language.toml": LANGUAGE for name in ("one", "two", "mute")},
        "middleware/mmm/middleware.toml": 'title = "M"\n[patterns.service]\n[patterns.topic]\n'
        '[settings.patience]\ntype = "integer"\ndefault = 0\n',
        "middleware/mmm/one/node.toml": 'payload_bytes_min = 16\nwire = "a"\n'
        + NODE
        + "[settings.patience]\nallowed = [0]\n",
        "middleware/mmm/two/node.toml": 'wire = "a"\n' + NODE.replace(', "async_client"', ""),
        "middleware/mmm/mute/node.toml": 'wire = "b"\n' + NODE,
        "middleware/nnn/middleware.toml": 'title = "N"\n[patterns.service]\n',
        "middleware/nnn/one/node.toml": NODE,
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    document = {
        "title": "T",
        "factors": factors or {"server_language": ["one", "two", "mute"]},
        "fixed": {"middleware": "mmm", "language": "one", "pattern": "service"} | fixed,
    }
    return prepare(parse_study("t", document, "test"), Catalog([folder]), None)


def cells_by_role(prepared):
    """Return role → name of the cell, for each treatment."""
    return [
        {role: cell.name for role, cell in prepared.cells[t.key].items()}
        for t in prepared.treatments
    ]


def test_a_client_calls_a_server_in_another_language_that_speaks_its_wire(tmp_path):
    prepared = of_three_languages(tmp_path, outstanding_max=2, rate_hz=10)
    assert cells_by_role(prepared) == [
        {"server": "mmm/one", "client": "mmm/one"},
        {"server": "mmm/two", "client": "mmm/one"},
    ]
    reasons = {t["server_language"]: reason for t, reason in prepared.skipped}
    assert reasons == {"mute": "mmm/one uses the wire format a, and mmm/mute uses b"}


def test_a_client_calls_a_server_of_another_cell_that_speaks_its_wire(tmp_path):
    levels = ["mmm/one", "mmm/two", "mmm/mute", "nnn/one"]
    prepared = of_three_languages(tmp_path, {"server_cell": levels}, rate_hz=10)
    assert cells_by_role(prepared) == [
        {"server": "mmm/one", "client": "mmm/one"},
        {"server": "mmm/two", "client": "mmm/one"},
    ]
    assert {t["server_cell"]: reason for t, reason in prepared.skipped} == {
        "mmm/mute": "mmm/one uses the wire format a, and mmm/mute uses b",
        "nnn/one": "server_cell = nnn/one is a cell of nnn, and the client's is mmm/one; allowed: "
        "a cell of mmm",
    }


def test_an_unknown_cell_or_two_factors_for_the_server_are_refused(tmp_path):
    with pytest.raises(UsageError, match='unknown cell "mmm/tow".*Did you mean "mmm/two"'):
        of_three_languages(tmp_path, {"server_cell": ["mmm/tow"]}, rate_hz=10)
    with pytest.raises(UsageError, match="both server_language = two and server_cell = mmm/one"):
        of_three_languages(
            tmp_path, {"server_cell": ["mmm/one"]}, server_language="two", rate_hz=10
        )


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        ({"payload_bytes": 15}, "mmm/one carries at least 16 bytes, not 15"),
        (
            {"payload_bytes": 31, "payload_encoding": "text"},
            "mmm/one carries at least 32 bytes, not 31",
        ),
        ({"settings.patience": 5}, r"mmm/one does not support patience = 5 \(supported: 0\)"),
    ],
)
def test_what_a_cell_alone_cannot_do_is_left_out_with_its_reason(tmp_path, fixed, message):
    with pytest.raises(MissingError, match=message):
        of_three_languages(tmp_path, rate_hz=10, **fixed)


def test_a_literal_may_be_shorter_than_a_sequence(tmp_path):
    assert of_three_languages(tmp_path, rate_hz=10, literal="Hello", payload_bytes=5).treatments


def test_a_meter_of_system_calls_is_refused_in_timed_runs_with_the_way_to_have_it(tmp_path):
    (tmp_path / "meters" / "counter").mkdir(parents=True)
    (tmp_path / "meters" / "counter" / "meter.toml").write_text(
        '[[quantity]]\nname = "syscall_calls"\n'
    )
    document = {
        "factors": {"clients": [1]},
        "fixed": {"cell": "mmm/lang", "pattern": "service"},
        "meters": {"use": ["counter"]},
    }
    with pytest.raises(UsageError, match=r"meters\.use: counter .* plan\.syscall_runs = 1"):
        prepare(parse_study("t", document, "test"), Catalog([tmp_path]), None)


class Builder:
    """Builder that records the requested builds.

    Cells in a language of `lacking` cannot be built.
    """

    def __init__(self, lacking=()):
        self.asked, self.lacking = [], lacking

    def cell(self, cell):
        self.asked.append(cell.name)
        if cell.language in self.lacking:
            raise MissingError(f"{cell.name} lacks its toolchain")
        return cell.name

    def absent_levels(self, cell):
        return {}

    def absent_capabilities(self, cell):
        return {}


def part_of_three(folder, wanted, builder):
    """Prepare a design over three languages, restricted to the languages in `wanted`."""
    of_three_languages(folder)
    document = {
        "title": "T",
        "factors": {"language": ["one", "two", "mute"]},
        "fixed": {"middleware": "mmm", "pattern": "service"},
    }
    study = parse_study("t", document, "test")
    return prepare(study, Catalog([folder]), builder, lambda t: t["language"] in wanted)


def test_what_was_not_asked_for_is_neither_built_nor_among_what_is_left_out(tmp_path):
    builder = Builder(lacking=["mute"])
    found = part_of_three(tmp_path, ["one"], builder)
    assert builder.asked == ["mmm/one"] and list(found.builds) == ["mmm/one"]
    assert [t["language"] for t in found.treatments] == ["one"]
    assert found.skipped == [] and found.unselected == 2


def test_what_was_asked_for_and_cannot_be_built_is_left_out_with_its_reason(tmp_path):
    found = part_of_three(tmp_path, ["one", "mute"], Builder(lacking=["mute"]))
    assert [(t["language"], why) for t, why in found.skipped] == [
        ("mute", "mmm/mute lacks its toolchain")
    ]


def test_a_part_that_holds_nothing_is_refused_apart_from_one_that_cannot_be_run(tmp_path):
    with pytest.raises(
        UsageError, match="--only selects no treatment; the design has 3 treatments"
    ):
        part_of_three(tmp_path, [], Builder())
    with pytest.raises(
        MissingError,
        match=r"no treatment that --only selects can be run here \(1 treatment skipped\)",
    ):
        part_of_three(tmp_path, ["mute"], Builder(lacking=["mute"]))


@pytest.mark.parametrize("of", ["cell", "environment", "service"])
def test_a_cell_whose_programs_are_not_here_is_left_out_of_a_plan_too(tmp_path, of):
    of_three_languages(tmp_path)
    node, middleware = (
        tmp_path / "middleware/mmm/mute/node.toml", tmp_path / "middleware/mmm/middleware.toml"
    )  # fmt: skip
    requires = 'requires = ["no-such-program"]\n'
    if of == "cell":
        node.write_text(requires + node.read_text())
    else:
        table = {"environment": "[environment]\n", "service": "[services.broker]\nargv = ['x']\n"}
        middleware.write_text(middleware.read_text() + table[of] + requires)
    document = {
        "factors": {"language": ["one", "two", "mute"]},
        "fixed": {"middleware": "mmm", "pattern": "service"},
    }
    study = parse_study("t", document, "test")
    if of != "cell":
        with pytest.raises(MissingError, match="no-such-program is not on PATH"):
            prepare(study, Catalog([tmp_path]), None)
        return
    found = prepare(study, Catalog([tmp_path]), None)
    assert [t["language"] for t in found.treatments] == ["one", "two"]
    assert [(t["language"], why) for t, why in found.skipped] == [
        ("mute", "mmm/mute: no-such-program is not on PATH; install it and try again")
    ]


def test_a_cell_that_is_not_built_yet_is_planned(tmp_path):
    class Looking(Builder):
        def cell(self, cell):
            raise NotBuiltError(cell.name, "")

    found = part_of_three(tmp_path, ["one"], Looking())
    assert [t["language"] for t in found.treatments] == ["one"] and not found.builds


class BuilderOfHost(Builder):
    """A builder on a host that lacks level 7 of `patience`, and may limit no CPU latency."""

    def absent_levels(self, cell):
        return {"patience": {"7": "no library of that age"}} if cell.name == "mmm/two" else {}

    def absent_capabilities(self, cell):
        return {"encoding.text": "no letters"} if cell.name == "mmm/two" else {}

    def cpu_latency_gap(self):
        return "the device cannot be written"


def on_this_host(folder, builder=None, **factors):
    of_three_languages(folder)
    fixed = {"middleware": "mmm", "language": "two", "pattern": "service"}
    document = {"title": "T", "factors": factors, "fixed": fixed}
    return prepare(parse_study("t", document, "test"), Catalog([folder]), builder)


def test_a_level_that_the_environment_lists_as_absent_is_skipped_with_the_reason(tmp_path):
    found = on_this_host(tmp_path, BuilderOfHost(), **{"settings.patience": [0, 7, 8]})
    assert [t["settings.patience"] for t in found.treatments] == [0, 8]
    (skipped,) = found.skipped
    assert skipped[1] == "mmm/two does not support patience = '7' here: no library of that age"


def test_a_capability_that_the_environment_lists_as_absent_is_skipped_with_the_reason(tmp_path):
    found = on_this_host(tmp_path, BuilderOfHost(), payload_encoding=["bytes", "text"])
    assert [t["payload_encoding"] for t in found.treatments] == ["bytes"]
    (skipped,) = found.skipped
    assert skipped[1] == "mmm/two does not support encoding.text here: no letters"


def test_without_a_builder_no_level_is_absent(tmp_path):
    found = on_this_host(tmp_path, **{"settings.patience": [0, 7], "cpu_latency_us": [0]})
    assert len(found.treatments) == 2


def test_a_limit_of_cpu_latency_is_skipped_if_the_device_cannot_be_written(tmp_path):
    builder = BuilderOfHost()
    with pytest.raises(MissingError, match="2 treatments skipped.*the device cannot be written"):
        on_this_host(tmp_path, builder, cpu_latency_us=[0, 2_000_000_000])
    assert not builder.asked, "nothing is built for skipped treatments"
    found = on_this_host(tmp_path, builder, payload_bytes=[64])
    assert len(found.treatments) == 1 and not found.skipped


def test_a_level_that_supports_only_some_payloads_skips_the_others_with_the_reason(tmp_path):
    of_three_languages(tmp_path)
    path = tmp_path / "middleware/mmm/middleware.toml"
    table = '[settings.array]\ntype = "string"\ndefault = "list"\nallowed = ["list", "fixed"]\n'
    path.write_text(path.read_text() + table + "only.fixed = {payload_bytes = [1024]}\n")
    document = {
        "title": "T",
        "factors": {"payload_bytes": [64, 1024], "settings.array": ["list", "fixed"]},
        "fixed": {"middleware": "mmm", "language": "two", "pattern": "service"},
    }
    found = prepare(parse_study("t", document, "test"), Catalog([tmp_path]), None)
    assert len(found.treatments) == 3
    ((skipped, reason),) = found.skipped
    assert (skipped["payload_bytes"], skipped["settings.array"]) == (64, "fixed")
    assert reason.startswith("payload_bytes = 64 with settings.array = fixed; allowed: 1024.")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"patience": "long"}, "setting patience: found 'long'; allowed: integer. The setting"),
        ({"patients": 1}, 'unknown setting "patients"; known: patience. Did you mean "patience"?'),
    ],
)
def test_an_invalid_setting_of_a_flow_names_the_flow(tmp_path, settings, problem):
    for path, text in {
        "languages/lang/language.toml": LANGUAGE,
        "middleware/mmm/middleware.toml": 'title = "M"\n[settings.patience]\ntype = "integer"\n'
        "default = 0\n",
        "middleware/mmm/lang/node.toml": NODE.replace("service", "topic"),
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    flow = {"name": "image", "payload_bytes": 64, "rate_hz": 10, "settings": settings}
    document = {"title": "T", "flow": [flow], "factors": {"language": ["lang"]},
                "fixed": {"middleware": "mmm"}}  # fmt: skip
    with pytest.raises(UsageError) as caught:
        prepare(parse_study("t", document, "test"), Catalog([tmp_path]), None)
    text = str(caught.value)
    assert text.startswith("flow image: middleware mmm: ") and problem in text
    assert text.endswith("in the study's [[flow]] image (settings) and applies to the nodes of "
                         "this flow.")  # fmt: skip
    assert "[factors]" not in text
