"""Test that names of people and machines are redacted and ordinary words remain."""

from __future__ import annotations

import pytest

from wattwire.store.bundle import _json
from wattwire.store.redact import Names, Redactor, names_here

NAMES = Names(
    hosts=("robot-7", "robot-7.lab.example"), users=("mara",), homes=("/srv/people/mara",),
    words=("ACME",),
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("up on robot-7.lab.example:80", "up on [host]:80"),
        ("Robot-7 answered", "[host] answered"),
        ("robot-71 stays, so does myrobot-7", "robot-71 stays, so does myrobot-7"),
        ("mara@robot-7", "[user]@[host]"),
        ("maraschino", "maraschino"),
        ("/srv/people/mara/ws/x.py", "~/ws/x.py"),
        ("/srv/people/marathon", "/srv/people/marathon"),
        ("see /ho" + "me/other/.bashrc.", "see ~/.bashrc."),
        ("link/ether 02:42:ac:11:00:02 brd ff:ff:ff:ff:ff:ff", "link/ether [mac] brd [mac]"),
        ("02-42-AC-11-00-02", "[mac]"),
        ("a digest 02:42:ac:11:00:02:aa:bb", "a digest 02:42:ac:11:00:02:aa:bb"),
        ("at 12:34:56 on 2026-11-21", "at 12:34:56 on 2026-11-21"),
        ("from fe80::42:acff:fe11:2%eth0 to ::1", "from [link-local] to ::1"),
        ("built for ACME", "built for [redacted]"),
    ],
)
def test_a_name_goes_and_its_neighbours_stay(text, clean):
    assert Redactor(NAMES).text(text) == clean


def test_what_was_found_is_counted_by_kind():
    redactor = Redactor(NAMES)
    redactor.text("mara, mara, 02:42:ac:11:00:02")
    assert redactor.replacements == {"user": 2, "address": 1}


def test_bytes_are_searched_for_names_that_are_no_chance():
    redactor = Redactor(NAMES)
    assert redactor.is_in(b"\xff\x00robot-7\x00")
    assert redactor.is_in(b"\xff02:42:ac:11:00:02")
    assert not redactor.is_in(b"\xff\x00nothing")


def test_the_names_of_this_machine_leave_out_what_names_nobody(monkeypatch):
    monkeypatch.setenv("HOME", "/srv/people/mara")
    monkeypatch.setenv("USER", "root")
    monkeypatch.setenv("LOGNAME", "mara")
    names = names_here(["x"])
    assert "root" not in names.users and "mara" in names.users
    assert "/srv/people/mara" in names.homes and names.words == ("x",)


@pytest.mark.parametrize(
    ("document", "shown"),
    [
        (["curl", "--password", "hunter2"], ["--password=hun…"]),
        (["x", "--api-key=abcdef"], ["api-key=abc…"]),
        ({"MY_TOKEN": "abcdef"}, ["MY_TOKEN=abc…"]),
        ("http://ann:geheim@example.org/", ["geh…"]),
        ("Authorization: Bearer abcdefghijk", ["abc…"]),
        ("AKIAABCDEFGHIJKLMNOP", ["AKI…"]),
        ("Authorization: Basic YW5uOmdlaGVpbQ==", ["YW5…"]),
        (["sh", "-c", "mysql --password hunter2 -h db"], ["--password=hun…"]),
        (["sh", "-c", "curl -u ann:geheim http://db"], ["geh…"]),
        ({"MYSQL_PASS": "abcdef"}, ["MYSQL_PASS=abc…"]),
        ("ACCESS_KEY=abcdef", ["ACCESS_KEY=abc…"]),
        ("--pass-through all --token --verbose; a basic configuration; bypass here", []),
        ({"token": "ww0123456789"}, []),
        (["--token", "ww0123456789"], []),
        ({"secret_word": 3, "a": "b"}, []),
        ("http://example.org:80/a@b tokens per second", []),
        (["--password", "Swift"], []),
    ],
)
def test_texts_that_look_like_secrets_are_reported_and_not_shown(document, shown) -> None:
    redactor = Redactor(Names(words=("Swift",)))
    _json(document, redactor)
    assert [text.lstrip("-") for text in redactor.secrets] == [text.lstrip("-") for text in shown]


@pytest.mark.parametrize(
    "written",
    [
        "a_b'c\"d ä",
        "a_b'c\\\"d ä",
        "a_b'c\\\"d \\u00e4",
        "a_b'\"'\"'c\"d ä",
        "a_b%27c%22d%20%C3%A4",
    ],
)
def test_a_word_is_redacted_in_the_notation_of_each_file(written: str) -> None:
    assert Redactor(Names(words=("a_b'c\"d ä",))).text(f"<{written}>") == "<[redacted]>"


def test_an_address_of_a_meter_is_a_whole_word() -> None:
    names = Names(meters=("shelly:plug:8080", "plug:8080", "plug", "/dev/ttyUSB0"))
    for text, clean in (
        ("http_plug/energy_input of plugs", "http_plug/energy_input of plugs"),
        ("shelly:plug:8080, plug and (plug:8080)", "[redacted], [redacted] and ([redacted])"),
        ("watts_up=/dev/ttyUSB0: gone", "watts_up=[redacted]: gone"),
        ("/dev/ttyUSB01", "/dev/ttyUSB01"),
    ):
        assert Redactor(names).text(text) == clean
    assert Redactor(names).is_in(b"\x00/dev/ttyUSB0\x00")


def test_a_secret_is_reported_with_its_files() -> None:
    redactor = Redactor(Names())
    for redactor.place in ("", "run.json", "methods.tex", "run.json"):
        redactor.text("API_TOKEN=abcdefgh")
    assert redactor.secrets == {"API_TOKEN=abc…": 4}
    assert redactor.secret_places == {"API_TOKEN=abc…": ["run.json", "methods.tex"]}
