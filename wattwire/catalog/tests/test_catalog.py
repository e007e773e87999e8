"""Tests of the catalogue, which discovers members and merges and validates manifests."""

import pytest

from wattwire.catalog import Catalog, default_roots
from wattwire.model.errors import UsageError

LANGUAGE = """title = "Lang"
[build]
commands = [["cc", "{build_flags...}"]]
[build.lists]
build_flags = ["-O2"]
[run]
argv = ["{build}/node"]
"""
MIDDLEWARE = """title = "M"
[patterns.topic]
listens = "subscriber"
[settings.depth]
type = "integer"
default = 10
[settings.mode]
type = "string"
default = "a"
allowed = ["a", "b"]
"""
NODE = """patterns = ["topic"]
capabilities = ["encoding.bytes"]
[build.lists]
build_flags = ["-O3", "-lm"]
"""


@pytest.fixture
def root(tmp_path):
    for path, text in {
        "languages/lang/language.toml": LANGUAGE,
        "middleware/mmm/middleware.toml": MIDDLEWARE,
        "middleware/mmm/lang/node.toml": NODE,
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def test_a_cell_is_its_manifests_merged_the_nearest_last(root):
    cell = Catalog([root]).cell("mmm/lang")
    assert cell.document["build"]["lists"]["build_flags"] == ["-O3", "-lm"]
    assert cell.document["build"]["commands"] == [["cc", "{build_flags...}"]]
    assert cell.middleware.listens("topic") == "subscriber"
    assert cell.middleware.listens("service") == "none"


def test_a_cell_may_import_the_modules_of_another_cell(root):
    path = root / "middleware/other/relative/node.toml"
    path.parent.mkdir(parents=True)
    (path.parents[1] / "middleware.toml").write_text('title = "O"\n')
    path.write_text('language = "lang"\nimports = "mmm/lang"\n' + NODE)
    catalog = Catalog([root])
    assert catalog.cell("other/relative").imported_folder == root / "middleware/mmm/lang"
    assert catalog.cell("mmm/lang").imported_folder is None
    path.write_text('language = "lang"\nimports = "mmm/lnag"\n' + NODE)
    with pytest.raises(UsageError, match=r'imports: unknown cell "mmm/lnag".*mean "mmm/lang"'):
        Catalog([root]).cell("other/relative")


@pytest.mark.parametrize("wrapped", ["lnag", "lang"])
def test_a_kit_wraps_only_the_kit_of_another_language(root, wrapped):
    path = root / "languages/wrapping/language.toml"
    path.parent.mkdir()
    path.write_text(f'title = "W"\nwraps = "{wrapped}"\n')
    node = root / "middleware/mmm/wrapping/node.toml"
    node.parent.mkdir()
    node.write_text(NODE)
    with pytest.raises(UsageError, match=f'wraps: unknown language with a kit "{wrapped}"'):
        Catalog([root]).cell("mmm/wrapping")
    (root / "languages/lang/language.toml").write_text('kit = "kit"\n' + LANGUAGE)
    path.write_text('title = "W"\nwraps = "lang"\n')
    catalog = Catalog([root])
    assert catalog.cell("mmm/wrapping").wrapped_kit == root / "languages/lang/kit"
    assert catalog.cell("mmm/lang").wrapped_kit is None


def test_the_first_settings_of_a_cell_are_supported(root):
    path = root / "middleware/mmm/lang/node.toml"
    assert Catalog([root]).cell("mmm/lang").first_settings == {"depth": 10, "mode": "a"}
    path.write_text(f'{NODE}[settings.mode]\nallowed = ["b"]\n')
    assert Catalog([root]).cell("mmm/lang").first_settings == {"depth": 10, "mode": "b"}
    path.write_text(f"{NODE}[settings.depth]\nallowed = [7, 10]\n")
    assert Catalog([root]).cell("mmm/lang").first_settings == {"depth": 10, "mode": "a"}


@pytest.mark.parametrize("table", ['minimum = "new"', 'ask = ["cc", "-v"]', 'minimum = "1."'])
def test_a_version_that_is_none_is_refused_where_it_stands(root, table):
    path = root / "middleware/mmm/lang/node.toml"
    path.write_text(f"{NODE}[versions.cc]\n{table}\n")
    with pytest.raises(UsageError, match=r"versions\.cc\.minimum: found .*; allowed: numbers"):
        Catalog([root]).cell("mmm/lang")


def test_a_cell_may_need_a_newer_version_than_its_language(root):
    path = root / "languages/lang/language.toml"
    path.write_text(LANGUAGE + '[versions.cc]\nminimum = "1.2"\nask = ["cc", "-v"]\n')
    path = root / "middleware/mmm/lang/node.toml"
    path.write_text(NODE + '[versions.cc]\nminimum = "1.3"\n')
    versions = Catalog([root]).cell("mmm/lang").document["versions"]
    assert versions == {"cc": {"minimum": "1.3", "ask": ["cc", "-v"]}}


def test_what_tells_replies_apart_is_the_middlewares_number_unless_its_manifest_says_otherwise(
    root,
):
    manifest = root / "middleware/mmm/middleware.toml"
    assert Catalog([root]).middleware["mmm"].replies_told_by("service") == "number"
    manifest.write_text(MIDDLEWARE + '[patterns.service]\nreplies_told_by = "sequence"\n')
    assert Catalog([root]).middleware["mmm"].replies_told_by("service") == "sequence"
    manifest.write_text(MIDDLEWARE + '[patterns.service]\nreplies_told_by = "luck"\n')
    with pytest.raises(UsageError, match="found 'luck'; allowed: number, sequence"):
        Catalog([root])


def test_messages_travel_between_hosts_unless_the_manifest_restricts_them_to_one(root):
    manifest = root / "middleware/mmm/middleware.toml"
    assert Catalog([root]).middleware["mmm"].reach == "network"
    manifest.write_text('reach = "host"\n' + MIDDLEWARE)
    assert Catalog([root]).middleware["mmm"].reach == "host"
    manifest.write_text('reach = "room"\n' + MIDDLEWARE)
    with pytest.raises(UsageError, match="reach: found 'room'; allowed: network, host"):
        Catalog([root])


def test_an_unknown_key_in_a_manifest_names_file_key_and_nearest(root):
    node = root / "middleware/mmm/lang/node.toml"
    node.write_text('patters = ["topic"]\n' + NODE)
    with pytest.raises(UsageError) as caught:
        Catalog([root]).cell("mmm/lang")
    assert str(node) in str(caught.value)
    assert 'unknown key "patters"' in str(caught.value)
    assert 'Did you mean "patterns"?' in str(caught.value)


def test_an_unknown_cell_is_answered_with_the_known_ones(root):
    with pytest.raises(UsageError, match='unknown cell "mmm/lung".*known: mmm/lang'):
        Catalog([root]).cell("mmm/lung")


def test_a_cell_of_a_middleware_that_is_not_included_is_answered_with_how_to_add_it(root):
    with pytest.raises(UsageError) as caught:
        Catalog([root]).cell("nats/go")
    assert 'unknown cell "nats/go", because nats is not included' in str(caught.value)
    assert "docs/howto/add-a-cell.md" in str(caught.value)
    assert "mmm/lang" not in str(caught.value)


def test_invalid_toml_is_refused_with_its_place(root):
    (root / "middleware/mmm/middleware.toml").write_text("title = ")
    with pytest.raises(UsageError, match="not valid TOML"):
        Catalog([root])


def test_settings_are_checked_against_the_manifest(root):
    middleware = Catalog([root]).middleware["mmm"]
    assert middleware.effective_settings({"depth": 3}) == {"depth": 3, "mode": "a"}
    with pytest.raises(UsageError, match='unknown setting "dept"'):
        middleware.effective_settings({"dept": 3})
    with pytest.raises(UsageError, match="found 'x'; allowed: integer"):
        middleware.effective_settings({"depth": "x"})
    with pytest.raises(UsageError, match="found 'c'; allowed: 'a', 'b'"):
        middleware.effective_settings({"mode": "c"})


def test_the_specs_of_a_cell_declare_what_its_manifests_say(root):
    path = root / "middleware/mmm/lang/node.toml"
    declared = Catalog([root]).cell("mmm/lang").declared
    assert declared == {
        "declared.roles": ["publisher", "subscriber"],
        "declared.capabilities": ["encoding.bytes"],
        "declared.payload_bytes_min": 0,
        "declared.payload_bytes_max": 67_108_864,
        "declared.record_bytes_max": 67_108_864,
        "declared.string_settings": ["mode"],
        "declared.integer_settings": ["depth"],
        "declared.boolean_settings": [],
        "declared.allowed.mode": ["a", "b"],
    }
    sizes = "payload_bytes_min = 16\npayload_bytes_max = 100\n"
    settings = '[settings.mode]\nallowed = ["b"]\n[settings.depth]\nallowed = [1]\n'
    path.write_text(sizes + NODE + settings)
    narrower = Catalog([root]).cell("mmm/lang").declared
    assert {key for key, value in narrower.items() if value != declared.get(key)} == {
        "declared.payload_bytes_min", "declared.payload_bytes_max", "declared.record_bytes_max",
        "declared.allowed.mode", "declared.allowed.depth",
    }  # fmt: skip
    assert narrower["declared.record_bytes_max"] == 100
    assert narrower["declared.allowed.mode"] == ["b"]
    path.write_text(f"record_bytes_max = 50\n{sizes}{NODE}")
    assert Catalog([root]).cell("mmm/lang").declared["declared.record_bytes_max"] == 50


def test_a_gap_says_what_is_lacking(root):
    cell = Catalog([root]).cell("mmm/lang")
    assert cell.gap("topic", ["encoding.bytes"]) is None
    assert "does not support the pattern action (supported: topic)" in str(cell.gap("action", []))
    assert "encoding.text" in str(cell.gap("topic", ["encoding.text"]))


def test_a_root_on_wattwire_path_adds_to_the_catalogue_and_wins(root, monkeypatch):
    monkeypatch.setenv("WATTWIRE_PATH", str(root))
    catalog = Catalog()
    assert catalog.roots[0] == root
    assert "mmm/lang" in catalog.cells
    assert len(catalog.cells) > 1
    assert default_roots()[0] == root


def test_every_manifest_that_is_shipped_is_valid():
    catalog = Catalog()
    assert {catalog.cell(name).name for name in catalog.cells} == set(catalog.cells)


def test_a_variants_root_goes_before_the_others_and_its_cells_say_whose_they_are(root, tmp_path):
    theirs = tmp_path / "theirs"
    (theirs / "middleware/mmm/lang").mkdir(parents=True)
    (theirs / "middleware/mmm/middleware.toml").write_text(MIDDLEWARE)
    (theirs / "middleware/mmm/lang/node.toml").write_text(NODE)
    here = Catalog([root])
    there = here.of_variant("head", str(theirs))
    cell, other = here.cell("mmm/lang"), there.cell("mmm/lang")
    assert other.folder == theirs / "middleware/mmm/lang" != cell.folder
    assert (cell.known_as, other.known_as) == ("mmm/lang", "head: mmm/lang")
    assert cell.name == other.name and other.language_folder == cell.language_folder
    with pytest.raises(
        UsageError, match="variant head: .*this folder has no middleware/ or languages/"
    ):
        here.of_variant("head", str(tmp_path / "nothing"))


def test_a_study_in_the_present_folder_has_that_folder_s_name(root, monkeypatch):
    folder = root / "mine"
    folder.mkdir()
    (folder / "study.toml").write_text("")
    monkeypatch.chdir(folder)
    for typed in (".", "study.toml"):
        assert Catalog([root]).study(typed)[0] == "mine"
