"""Tests of the credentials of a run: who signed them, for whom, where they are, and how private."""

from __future__ import annotations

import base64
import datetime
import re
import subprocess
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography import x509

from wattwire.hosts.host import Host
from wattwire.model.deployment import HOST
from wattwire.model.errors import MissingError
from wattwire.model.rig import ONE_HOST
from wattwire.run.credentials import KEYS, Authority, Subject, credential_words, place
from wattwire.run.failed_attempt import ends_campaign

ADDRESS = "10.77.0.2"
DOCUMENT = "<grant><subject_name>{subject}</subject_name><topic>{token}</topic></grant>"


class Agent:
    """Agent that writes files below a cache with a mode that it may change."""

    def __init__(self, cache, mode=None):
        self.hello = {"cache": str(cache)}
        self._mode = mode

    def submit(self, operation, **fields):
        path = Path(fields["path"])
        if operation == "folder":
            path.mkdir(parents=True)
        else:
            path.write_bytes(base64.b64decode(fields["base64"]))
            path.chmod(self._mode or fields["mode"])

    def reply(self, _operation, _future):
        return {}

    def request(self, operation, *_, argv, **__):
        assert operation == "command"
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        return {"code": done.returncode, "signal": None, "output": done.stdout}


def host(name, cache, mode=None):
    spec = SimpleNamespace(**{**vars(ONE_HOST.hosts[HOST]), "name": name})
    return Host(spec, Agent(cache, mode))


def test_each_host_has_the_private_keys_of_its_own_processes_alone(tmp_path):
    near, far = host("near", tmp_path / "near"), host("far", tmp_path / "far")
    authority = Authority()
    subjects = [
        (near, Subject("subscriber-0", (ADDRESS,))),
        (far, Subject("broker", ("10.77.0.3",))),
    ]
    placed = place(authority, "ww0", subjects)
    assert placed.keys() == {"subscriber-0", "broker"}
    for process, cache in (("subscriber-0", "near"), ("broker", "far")):
        keys = sorted((tmp_path / cache).rglob("key.pem"))
        assert [str(key) for key in keys] == [placed[process]["tls.key"]]
        assert all(path.stat().st_mode & 0o777 == 0o600 for path in keys)
    assert Path(placed["broker"]["tls.key"]).is_relative_to(far.private_folder("ww0"))


def test_an_identity_is_signed_by_the_authority_for_the_addresses_of_its_host(tmp_path):
    authority = Authority()
    identity = authority.identity("subscriber-0", (ADDRESS,))
    certificate = x509.load_pem_x509_certificate(identity.certificate)
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {*map(str, names.get_values_for_type(x509.IPAddress))} == {ADDRESS}
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert "CN=subscriber-0" in identity.subject


def test_documents_name_their_subject_and_the_authority_signed_them(tmp_path):
    authority = Authority()
    documents = {"security.permissions": DOCUMENT}
    words = {"token": "ww0"}
    subject = Subject("subscriber-0", (ADDRESS,), documents, words)
    (paths,) = place(authority, "ww0", [(host("near", tmp_path), subject)]).values()
    assert set(paths) == {*KEYS} - {"security.governance"}
    verify = [
        "openssl", "smime", "-verify", "-in", paths["security.permissions"],
        "-CAfile", paths["tls.authority"], "-purpose", "any",
    ]  # fmt: skip
    done = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "CN=subscriber-0" in done.stdout
    assert "<topic>ww0</topic>" in done.stdout


@pytest.mark.parametrize(
    ("run", "settings", "domain"),
    [
        ("ww0f1", {}, "33 33"),
        ("ww0", {}, "66 66"),
        ("ww0", {"settings.domain": "0"}, "66 66"),
        ("ww0", {"settings.domain": "7"}, "7 7"),
        ("", {"settings.domain": "0"}, "0 230"),
    ],
)
def test_documents_are_for_the_domain_of_the_flow(tmp_path, run, settings, domain):
    documents = {"security.governance": "<id_range>{domain_min} {domain_max}</id_range>"}
    words = {"token": "ww0", "run": run, **settings}
    subject = Subject("subscriber-0", (ADDRESS,), documents, words)
    (paths,) = place(Authority(), "ww0", [(host("near", tmp_path), subject)]).values()
    assert f"<id_range>{domain}</id_range>" in Path(paths["security.governance"]).read_text()


def test_documents_are_valid_on_hosts_whose_clocks_differ_by_years(tmp_path):
    documents = {"security.permissions": "<a>{not_before}</a><a>{not_after}</a>"}
    subject = Subject("subscriber-0", (ADDRESS,), documents, {"token": "ww0"})
    (paths,) = place(Authority(), "ww0", [(host("near", tmp_path), subject)]).values()
    text = Path(paths["security.permissions"]).read_text()
    times = [datetime.datetime.fromisoformat(each) for each in re.findall("<a>(.*?)</a>", text)]
    now = datetime.datetime.now()
    assert times[0] < now - datetime.timedelta(days=19 * 365)
    assert times[1] > now + datetime.timedelta(days=19 * 365)


def test_a_key_that_others_can_read_is_refused(tmp_path):
    readable = host("near", tmp_path, mode=0o644)
    place_key = partial(place, Authority(), "ww0", [(readable, Subject("broker", (ADDRESS,)))])
    with pytest.raises(MissingError, match=r"key.pem on host near: found the mode 644") as raised:
        place_key()
    assert "allowed: 600" in str(raised.value)
    assert ends_campaign(raised.value)


def test_a_service_without_credentials_has_empty_placeholders():
    assert credential_words({}) == dict.fromkeys(KEYS, "")
