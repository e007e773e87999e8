"""Test that the controller and the conformance suite declare the same of each cell (C-03)."""

from types import SimpleNamespace

import pytest

from contract.conformance.roles import PATTERNS
from contract.conformance.schema import breaches
from contract.conformance.spec import DECLARED, base_spec, setting_names
from wattwire.catalog import Catalog, home
from wattwire.cli.conformance import suite, under_test

CATALOG = Catalog([home()])


@pytest.mark.parametrize("name", CATALOG.cells)
def test_the_suites_specs_declare_what_the_controllers_specs_declare(name, tmp_path):
    cell = CATALOG.cell(name)
    build = SimpleNamespace(cell=cell, argv=(), env={}, words={})
    hosts = SimpleNamespace(entries=(), service_address="")
    subject = under_test(suite(), build, hosts, tmp_path)
    pattern = subject.patterns[0]
    spec = base_spec(subject, pattern, PATTERNS[pattern].sender)
    assert list(breaches("spec", spec)) == []
    declared = {key: value for key, value in spec.items() if key.startswith(DECLARED)}
    assert ordered(declared) == ordered(cell.declared)
    settings = [key for key in spec if key.startswith("settings.")]
    assert sorted(settings) == sorted(f"settings.{name}" for name in setting_names(spec))


def test_a_level_that_the_host_does_not_support_is_not_tested(tmp_path):
    cell = CATALOG.cell("ros2/python")
    build = SimpleNamespace(cell=cell, argv=(), env={}, words={})
    hosts = SimpleNamespace(entries=(), service_address="")
    subject = under_test(suite(), build, hosts, tmp_path)
    assert (subject.message_setting, subject.velocity_absent) == ("message", "")
    assert "twist_stamped" in subject.only["message"]
    absent = {"message": {"twist_stamped": "no such package"}}
    subject = under_test(suite(), build, hosts, tmp_path, absent_levels=absent)
    assert subject.velocity_absent == "no such package"
    assert not subject.only["message"]
    assert subject.only["array"]


def ordered(declared):
    """Return the declaration with sorted lists, because the order has no meaning."""
    return {k: sorted(map(repr, v)) if isinstance(v, list) else v for k, v in declared.items()}
