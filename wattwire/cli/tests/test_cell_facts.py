"""Tests of the descriptions of cells by `list` and `show`."""

from __future__ import annotations

import pytest

from wattwire.cli.main import main
from wattwire.rig.observed import ObservedRun, note_run


def printed(capsys, *typed, code=0):
    assert main(list(typed)) == code
    found = capsys.readouterr()
    return found.out if code == 0 else found.err


def names(text):
    return [line.split()[0] for line in text.splitlines()[1:] if line.startswith("  ")
            and not line.startswith("   ")]  # fmt: skip


def test_list_takes_a_name_its_beginning_or_a_pattern(capsys):
    assert names(printed(capsys, "list", "cells", "ros2/python")) == ["ros2/python"]
    some = names(printed(capsys, "list", "cells", "ros2"))
    assert "ros2/cpp" in some and all(name.startswith("ros2/") for name in some)
    assert set(names(printed(capsys, "ls", "cells", "*/go", "mqtt"))) >= {"rest/go", "mqtt/python"}
    said = printed(capsys, "list", "cells", "ros2")
    assert said.startswith(f"{len(some)} of ") and "Next: wattwire show cell ros2/" in said


def test_list_of_what_is_not_there_offers_the_nearest(capsys):
    said = printed(capsys, "list", "cells", "ros3", code=2)
    assert 'unknown cell "ros3". Did you mean "ros2"?' in said


def test_a_cell_is_shown_with_settings_defaults_roles_and_whether_it_can_be_built(capsys):
    said = " ".join(printed(capsys, "show", "cell", "ros2/python").split())
    assert "ros2/python: ROS 2 in Python" in said
    assert "reliability reliable, best_effort; default reliable. Reliability QoS of" in said
    assert "depth integer minimum 1; default 10." in said
    assert (
        "pattern topic one publisher, and nodes with the role subscriber; the nodes discover "
        "each other" in said
    )
    assert "capabilities encoding.bytes, encoding.text" in said
    assert "here " in said


def test_a_cell_whose_messages_stay_on_one_host_is_shown_as_such(capsys):
    said = " ".join(printed(capsys, "show", "cell", "loopback/python").split())
    assert "reach all nodes must be on one host" in said
    assert " reach " not in " ".join(printed(capsys, "show", "cell", "udp/python").split())


def test_what_a_cell_guarantees_is_what_its_nodes_said_last(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("WATTWIRE_CACHE", str(tmp_path))
    said = " ".join(printed(capsys, "show", "cell", "mqtt/python").split())
    assert "not known yet unknown before the first run of the cell" in said and "paho-mqtt" in said
    ready = {"library": {"name": "paho", "version": "9.9"},
             "guarantee": {"delivery": "at_least_once", "ordering": "per_sender"},
             "seen": "2026-01-02"}  # fmt: skip
    note_run("mqtt/python", ObservedRun(2, 1.0), ready)
    said = " ".join(printed(capsys, "show", "cell", "mqtt/python").split())
    assert "delivery at least once ordering per sender seen 2026-01-02" in said
    assert "in the latest run here paho 9.9" in said


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["show", "cell"], "show cell: CELL is missing; `wattwire list cells` lists the cells"),
        (["show", "cell", "ros2/pyton"], 'Did you mean "ros2/python"?'),
        (["show", "cell", "ros2/python", "--commands"], "--commands needs a run"),
    ],
)
def test_a_cell_that_cannot_be_shown_is_told_why(capsys, typed, words):
    assert words in printed(capsys, *typed, code=2)


def test_values_that_a_cell_lacks_are_left_out_of_what_is_allowed(capsys):
    said = " ".join(printed(capsys, "show", "cell", "grpc/cpp").split())
    assert "server_workers 0; default 0." in said and "This cell allows only these:" in said
