"""Test the levels of settings that support only some levels of other factors."""

import pytest

from wattwire.catalog import Catalog
from wattwire.catalog.only import only_gap
from wattwire.model.errors import UsageError

MIDDLEWARE = """title = "M"
[settings.array]
type = "string"
default = "sequence"
"""
ALLOWED = 'allowed = ["sequence", "fixed"]\n'
TABLE = {"allowed": ["sequence", "fixed"],
         "only": {"fixed": {"pattern": ["topic"], "payload_bytes": [1024, 4096]}}}  # fmt: skip


def gap(array, **levels):
    levels = {"pattern": "topic", "payload_bytes": 1024, **levels}
    return only_gap({"array": TABLE}, {"array": array}, levels.__getitem__)


@pytest.mark.parametrize("payload_bytes", [1024, 4096])
def test_a_supported_level_has_no_gap(payload_bytes):
    assert gap("fixed", payload_bytes=payload_bytes) is None


def test_other_levels_of_the_setting_support_everything():
    assert gap("sequence", payload_bytes=1000, pattern="service") is None


@pytest.mark.parametrize(
    ("levels", "reason"),
    [
        ({"payload_bytes": 1000}, "payload_bytes = 1000 with settings.array = fixed; allowed: 1024,"
         " 4096. Choose one of them, or settings.array = sequence"),
        ({"pattern": "service"}, "pattern = 'service' with settings.array = fixed; allowed: 'topic'"
         ". Choose one of them, or settings.array = sequence"),
    ],
)  # fmt: skip
def test_an_unsupported_level_names_factor_level_and_remedy(levels, reason):
    assert gap("fixed", **levels) == reason


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (ALLOWED + "only.fixd = {pattern = ['topic']}", 'only: unknown level "fixd"'),
        (ALLOWED + "only.fixed = {nodes = [3]}", 'only.fixed: unknown factor "nodes"'),
        (ALLOWED + "only.fixed = {pattern = []}", "only.fixed.pattern: found no levels"),
        ("only.fixed = {pattern = ['topic']}", "only: found a setting without allowed levels"),
    ],
)  # fmt: skip
def test_an_invalid_restriction_is_rejected_with_its_place(tmp_path, manifest, message):
    path = tmp_path / "middleware/mmm/middleware.toml"
    path.parent.mkdir(parents=True)
    path.write_text(MIDDLEWARE + manifest)
    with pytest.raises(UsageError) as error:
        Catalog([tmp_path])
    assert message in str(error.value) and "middleware.toml" in str(error.value)
