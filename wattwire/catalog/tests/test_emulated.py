"""Test the table [emulated] of a cell's manifest."""

import pytest

from wattwire.catalog.emulated import check_emulated
from wattwire.model.errors import UsageError

TABLE = {"device": "Board", "clock_hz": 25e6, "cycles_per_instruction": [0.5, 3.0]}


def test_a_complete_table_is_accepted():
    check_emulated("node.toml", TABLE)


def test_a_machine_without_a_clock_needs_its_name_alone():
    check_emulated("node.toml", {"device": "Machine"})
    with pytest.raises(UsageError, match="device: found nothing"):
        check_emulated("node.toml", {})


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("device", None, "device: found nothing; allowed: the name of the device"),
        ("device", "", "device: found ''; allowed: the name"),
        ("clock_hz", 0.0, "clock_hz: found 0.0; allowed: the frequency"),
        ("clock_hz", None, "clock_hz: found nothing"),
        ("cycles_per_instruction", [3.0, 0.5], r"found \[3.0, 0.5\]; allowed: two numbers above 0"),
        ("cycles_per_instruction", [1.0], r"found \[1.0\]; allowed: two numbers above 0"),
        ("cycles_per_instruction", [0.0, 1.0], r"found \[0.0, 1.0\]"),
    ],
)
def test_a_missing_key_or_a_bad_value_is_named_with_what_is_allowed(key, value, message):
    table = {**TABLE, key: value}
    if value is None:
        del table[key]
    with pytest.raises(UsageError, match=f"node.toml: emulated: {key}: |{message}") as error:
        check_emulated("node.toml", table)
    assert message.replace("\\", "") in str(error.value)
