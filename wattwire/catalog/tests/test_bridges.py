"""Tests of the manifests of bridges: what they join, and invalid values."""

import pytest

from wattwire.catalog import Catalog
from wattwire.model.errors import UsageError

MANIFEST = """title = "Joined"
inner = "inside"
outer = "between"
language = "plain"
evidence = "records"
listens = true
payload_bytes_max = 100
[settings]
depth = 5
[run]
argv = ["bridge"]
"""
SETTING = """title = "M"
[settings.depth]
type = "integer"
default = 1
"""
OUTER = """title = "B"
[settings.via]
type = "string"
default = "direct"
allowed = ["direct", "hub"]
[services.hub]
when = { settings.via = "hub" }
argv = ["hub"]
ready = { port = "{port}" }
ports = 1
"""
METER = """title = "W"
[[quantity]]
name = "frames"
scope = "interface"
counter = true
[[quantity]]
name = "load"
scope = "interface"
counter = false
[[quantity]]
name = "ticks"
scope = "machine"
counter = true
"""


def catalog(root, manifest=MANIFEST):
    files = {
        "middleware/inside/middleware.toml": SETTING,
        "middleware/between/middleware.toml": OUTER,
        "languages/plain/language.toml": 'title = "P"\n',
        "bridges/joined/bridge.toml": manifest,
        "meters/wire/meter.toml": METER,
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Catalog([root])


def test_a_bridge_is_found_by_its_manifest(tmp_path):
    known = catalog(tmp_path)
    bridge = known.bridge("joined")
    assert list(known.bridges) == ["joined"]
    assert (bridge.name, bridge.middleware.name, bridge.outer.name) == (
        "bridges/joined", "inside", "between",
    )  # fmt: skip
    assert bridge.exit_listens and bridge.payload_bytes_max == 100
    assert bridge.document["run"]["argv"] == ["bridge"]


def test_a_bridge_names_a_counter_of_frames_per_interface(tmp_path):
    assert catalog(tmp_path).bridge("joined").inner_frames == ""
    counted = MANIFEST.replace("listens = true", 'inner_frames = "frames"')
    assert catalog(tmp_path, counted).bridge("joined").inner_frames == "frames"


SETTABLE = MANIFEST.replace("listens = true", 'listens = true\nsettable = ["via"]')


def test_a_study_sets_what_a_bridge_permits_of_its_outer_middleware(tmp_path):
    known = catalog(tmp_path, SETTABLE)
    assert known.bridge("joined").end_settings == {"via": "direct"}
    through_hub = known.bridge("joined", {"via": "hub"})
    assert through_hub.end_settings == {"via": "hub"}
    assert not through_hub.exit_listens and known.bridge("joined").exit_listens
    with pytest.raises(
        UsageError, match="bridge joined: outer_settings: .*allowed: 'direct', 'hub'"
    ):
        known.bridge("joined", {"via": "elsewhere"})


def test_a_bridge_declares_its_end_and_the_outer_settings_that_a_study_may_set(tmp_path):
    manifest = SETTABLE.replace("listens = true", 'listens = true\ncapabilities = ["loop.open"]')
    declared = catalog(tmp_path, manifest).bridge("joined").declared
    assert declared["declared.roles"] == ["relay"]
    assert declared["declared.capabilities"] == ["loop.open"]
    assert declared["declared.integer_settings"] == ["depth"]
    assert declared["declared.string_settings"] == ["bridge_end", "outer_via"]
    assert declared["declared.allowed.bridge_end"] == ["entry", "exit"]
    assert declared["declared.allowed.outer_via"] == ["direct", "hub"]
    assert declared["declared.payload_bytes_max"] == 100


def test_outer_settings_that_a_bridge_does_not_permit_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"bridge joined.*via"):
        catalog(tmp_path).bridge("joined", {"via": "hub"})


def test_settings_of_a_treatment_precede_those_of_its_bridge(tmp_path):
    bridge = catalog(tmp_path).bridge("joined")
    assert bridge.inner_settings({}) == {"depth": 5}
    assert bridge.inner_settings({"depth": 7}) == {"depth": 7}


@pytest.mark.parametrize(
    ("before", "after", "part"),
    [
        ('outer = "between"', 'outer = "inside"', "which is also inner"),
        ('outer = "between"', 'outer = "elsewhere"', "outer: unknown middleware"),
        ('outer = "between"\n', "", "outer: found nothing"),
        ('evidence = "records"', 'evidence = "words"', "allowed: records, counters"),
        ('evidence = "records"', 'evidence = "counters"', "only bridges that leave records"),
        ("depth = 5", 'depth = "deep"', "allowed: integer"),
        ("listens = true", 'listens = true\ninner_cell = "rust"', "inner_cell"),
        ("listens = true", "ears = true", "ears"),
        ("listens = true", 'settable = ["vai"]', "settable: unknown setting.*via"),
        ("listens = true", 'inner_frames = "load"', "inner_frames: unknown counter.*frames"),
        ("listens = true", 'inner_frames = "ticks"', "inner_frames: unknown counter.*frames"),
    ],
)
def test_an_invalid_manifest_is_refused_with_the_key(tmp_path, before, after, part):
    assert before in MANIFEST
    with pytest.raises(UsageError, match=part) as refusal:
        catalog(tmp_path, MANIFEST.replace(before, after)).bridge("joined")
    assert "bridge.toml" in str(refusal.value)


def test_an_unknown_bridge_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(UsageError, match="joined"):
        catalog(tmp_path).bridge("joinde")
