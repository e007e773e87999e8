"""Tests of a middleware's services: the treatments that need them, and invalid manifests."""

import pytest

from wattwire.catalog import Catalog
from wattwire.catalog.services import setting_words
from wattwire.model.errors import UsageError

MIDDLEWARE = """title = "M"
[patterns.topic]
listens = "subscriber"
[settings.via]
type = "string"
default = "direct"
allowed = ["direct", "router"]
[settings.depth]
type = "integer"
default = 1
[services.clock]
argv = ["clock"]
"""
ROUTER = """[services.router]
argv = ["router", "{address}:{port}"]
ports = 1
when = {settings.via = "router"}
hub = true
endpoints = ["{address}:{port}"]
"""


def middleware(root, text):
    path = root / "middleware" / "mmm" / "middleware.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return Catalog([root]).middleware["mmm"]


def test_a_service_is_needed_where_the_settings_match_its_condition(tmp_path):
    known = middleware(tmp_path, MIDDLEWARE + ROUTER)
    assert list(known.services_for({})) == ["clock"]
    assert list(known.services_for({"via": "direct"})) == ["clock"]
    assert list(known.services_for({"via": "router"})) == ["clock", "router"]


def test_no_node_listens_where_all_connect_to_a_service(tmp_path):
    known = middleware(tmp_path, MIDDLEWARE + ROUTER)
    assert known.listens("topic") == "subscriber"
    assert known.listens("topic", {"via": "router"}) == "none"
    beside = middleware(tmp_path, MIDDLEWARE + ROUTER.replace("hub = true\n", ""))
    assert beside.listens("topic", {"via": "router"}) == "subscriber"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("settings.via", "settings.vai", 'router.when: unknown setting "vai".*mean "via"'),
        ('= "router"}', '= "bridge"}', "via: found 'bridge'; allowed: 'direct', 'router'"),
        ('settings.via = "router"', 'settings.depth = "x"', "depth: found 'x'; allowed: integer"),
        ('settings.via = "router"', "settings.depth = true", "found True; allowed: integer"),
        ('settings.via = "router"', "via = 1", 'when: unknown key "via"'),
        ('endpoints = ["{address}:{port}"]\n', "", "hub: found true without endpoints"),
        ("hub = true", 'files = {f = "{settings.vai}"}', 'files: unknown setting "vai"'),
        ("hub = true", "counters = []", r"counters: found \[\]; allowed: a program"),
        ('"{address}:{port}"]\nports', '"{environment}/x"]\nports', r"argv: found \{environment\}"),
        ("hub = true", 'counters = ["{environment}/x"]', r"counters: found \{environment\}"),
        ("services.router", 'services."a b"', "found the name 'a b'; allowed: letters"),
    ],
)
def test_an_invalid_service_is_refused_with_key_value_and_allowed_values(
    tmp_path, old, new, problem
):
    assert old in ROUTER
    with pytest.raises(UsageError, match=problem):
        middleware(tmp_path, MIDDLEWARE + ROUTER.replace(old, new))


@pytest.mark.parametrize("name", ["later", "clock", "router"])
def test_a_service_may_name_only_earlier_services_with_endpoints(tmp_path, name):
    later = '[services.later]\nargv = ["later"]\nendpoints = ["{address}:1"]\n'
    text = MIDDLEWARE + ROUTER.replace("hub = true", f'files = {{f = "{{services.{name}}}"}}')
    with pytest.raises(UsageError, match=rf"files: found \{{services\.{name}\}}; .*\(none\)"):
        middleware(tmp_path, text + later)


def test_a_service_may_name_an_earlier_service(tmp_path):
    later = '[services.later]\nargv = ["later", "{services.router}"]\n'
    known = middleware(tmp_path, MIDDLEWARE + ROUTER + later)
    assert list(known.services) == ["clock", "router", "later"]


def test_settings_are_words_of_services_as_toml_writes_them():
    words = setting_words({"via": "router", "nodelay": True, "depth": 3})
    assert words == {"settings.via": "router", "settings.nodelay": "true", "settings.depth": "3"}


def test_a_service_may_use_the_environment_that_its_middleware_has(tmp_path):
    text = MIDDLEWARE + ROUTER.replace("hub = true", 'counters = ["{environment}/x"]')
    known = middleware(tmp_path, text + '[environment]\ncommands = [["true"]]\n')
    assert known.services["router"]["counters"] == ["{environment}/x"]


SECURED = """[settings.security]
type = "string"
default = "off"
allowed = ["off", "on"]
purpose = "security"
[services.broker]
argv = ["broker"]
files = {plain = "1", config = "anonymous"}
[services.broker.secured.files]
config = "key {tls.key}"
"""


def test_a_secured_service_has_the_keys_of_its_table_secured(tmp_path):
    text = MIDDLEWARE.replace("[services.clock]", SECURED + "[services.clock]")
    known = middleware(tmp_path, text)
    plain, secured = (known.services_for({"security": level})["broker"] for level in ("off", "on"))
    assert plain == {"argv": ["broker"], "files": {"plain": "1", "config": "anonymous"}}
    assert secured["files"] == {"plain": "1", "config": "key {tls.key}"}
    assert "secured" not in secured


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('purpose = "security"\n', "", r"\[services.broker.secured\], but no setting has the purp"),
        ('"off", "on"]', '"on", "off"]', r"allowed = \['off', 'on'\] and default = 'off'"),
        ('default = "off"', 'default = "on"', "found .* and default = 'on'; allowed"),
        ("{tls.key}", "{settings.nothing}", 'unknown setting "nothing"'),
    ],
)
def test_a_manifest_with_impossible_security_is_refused(tmp_path, old, new, problem):
    text = MIDDLEWARE.replace("[services.clock]", SECURED + "[services.clock]")
    assert old in text
    with pytest.raises(UsageError, match=problem):
        middleware(tmp_path, text.replace(old, new))
