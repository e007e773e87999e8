"""Test that bundles omit damaged, secret, huge and badly named files, each with a reason."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import polars as pl
import pytest

from wattwire.model.errors import UsageError
from wattwire.store import Campaign
from wattwire.store.bundle import TEXT_BYTES_MAX, Bundled, bundle
from wattwire.store.redact import NOTE, Names, Redactor, names_noted, note_names

KEY = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n-----END EC PRIVATE KEY-----\n"


@pytest.fixture
def campaign(tmp_path) -> Path:
    made = Campaign.create(tmp_path / "c")
    made.journal.write_plan([("b01-p001", 1, 1, "t1")])
    number = made.journal.begin("b01-p001", "token", "now")
    partial = made.open_attempt("b01-p001", number)
    row = {"run": "b01-p001", "attempt": 1, "verdict": "valid", "host": "mara-box", "sent": 3}
    (partial / "summary.json").write_text(json.dumps(row))
    pl.DataFrame([row]).write_parquet(partial / "events.parquet")
    made.journal.finish("b01-p001", number, "valid", "completed",
                        made.commit("b01-p001", number, partial), "later")  # fmt: skip
    made.write_summary(made.rows(), {})
    made.close()
    return tmp_path / "c"


def bundled(campaign: Path, names: Names | None = None) -> tuple[Bundled, dict[str, bytes]]:
    done = bundle(campaign, campaign.with_name("c.zip"), Redactor(names or Names()), "0")
    with zipfile.ZipFile(done.path) as archive:
        assert archive.testzip() is None
        return done, {name[2:]: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"\0" * 400, b"PAR1" + b"\xff" * 90 + b"PAR1"])
def test_a_damaged_table_is_left_out_with_its_reason(campaign, damage) -> None:
    (campaign / "runs/b01-p001-1/events.parquet").write_bytes(damage)
    done, files = bundled(campaign)
    assert "runs/b01-p001-1/events.parquet" not in files and "summary.parquet" in files
    (told,) = done.left_out
    assert told.startswith("runs/b01-p001-1/events.parquet: damaged, not a Parquet file")


@pytest.mark.parametrize("name", [b"\xff\xfe", b"a\\..\\b", b"a\nb", b"a\x1b[2Jb"])
def test_a_file_whose_name_others_cannot_write_is_left_out(campaign, name) -> None:
    folder = os.fsencode(campaign / "runs/b01-p001-1")
    with open(os.path.join(folder, name), "wb") as file:
        file.write(b"x")
    done, files = bundled(campaign)
    (told,) = done.left_out
    assert told.isascii() and "its name" in told
    assert not any("\\" in name or not name.isprintable() for name in files)


def test_a_link_is_left_out_and_told(campaign, tmp_path) -> None:
    (tmp_path / "secret").write_text("x")
    (campaign / "runs/b01-p001-1/linked").symlink_to(tmp_path / "secret")
    done, files = bundled(campaign)
    assert done.left_out == ["runs/b01-p001-1/linked: a symbolic link"]
    assert "runs/b01-p001-1/linked" not in files


def test_a_huge_sparse_file_is_left_out_and_never_read_as_a_whole(campaign) -> None:
    with (campaign / "runs/b01-p001-1/core").open("wb") as file:
        file.truncate(100 * 2**30)
    done, files = bundled(campaign)
    (told,) = done.left_out
    assert told == f"runs/b01-p001-1/core: {100 * 2**30:,} bytes; at most {TEXT_BYTES_MAX:,} are " \
                   "searched for names"  # fmt: skip


def test_private_keys_stay_where_they_are(campaign) -> None:
    tls = campaign / "runs/b01-p001-1/tls"
    tls.mkdir()
    (tls / "key.pem").write_text(KEY)
    (tls / "certificate.pem").write_text(KEY.replace("EC PRIVATE KEY", "CERTIFICATE"))
    done, files = bundled(campaign)
    assert done.left_out == ["runs/b01-p001-1/tls/key.pem: a private key"]
    assert "runs/b01-p001-1/tls/certificate.pem" in files
    assert not any(b"PRIVATE KEY" in data for data in files.values())


def test_json_too_deep_to_parse_is_rewritten_as_text(campaign) -> None:
    (campaign / "runs/b01-p001-1/run.json").write_text("[" * 100_000 + "mara-box")
    done, files = bundled(campaign, Names(hosts=("mara-box",)))
    assert files["runs/b01-p001-1/run.json"].endswith(b"[[host]")


def test_two_files_that_are_called_alike_without_names_are_not_both_there(campaign) -> None:
    for name in ("mara", "jo"):
        (campaign / f"runs/b01-p001-1/{name}.log").write_text("x")
    done, files = bundled(campaign, Names(users=("mara", "jo")))
    assert "runs/b01-p001-1/[user].log" in files
    assert done.left_out == [
        "runs/b01-p001-1/[user].log: after redaction, its name would equal the name of another file"
    ]


def test_names_of_the_machine_that_measured_go_wherever_it_is_bundled(
    campaign, monkeypatch, tmp_path
) -> None:
    with monkeypatch.context() as there:
        there.setattr("socket.gethostname", lambda: "robby42")
        there.setenv("USER", "carol")
        there.setenv("HOME", "/srv/people/carol")
        note_names(campaign, {str(campaign): "[campaign]", "/srv/cache": "[cache]", "/usr": "[x]"})
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    said = f"carol on robby42 /srv/people/carol/secret {campaign}/runs /srv/cache/x /usr/bin {boot}"
    (campaign / "runs/b01-p001-1/a.log").write_text(said)
    noted = names_noted(campaign)
    assert noted is not None and boot in noted.boots
    done, files = bundled(campaign, noted)
    assert NOTE not in files
    told = files["runs/b01-p001-1/a.log"].decode()
    start, word = told.rsplit(" ", 1)
    assert start == "[user] on [host] ~/secret [campaign]/runs [cache]/x /usr/bin"
    assert word.startswith("boot-") and boot not in told
    note_names(campaign, {})
    again = names_noted(campaign)
    assert again is not None and "robby42" in again.hosts, "what earlier machines left stays"


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"hosts": 5}', '{"places": [["a"]]}', '{"hosts": [""]}']
)
def test_a_damaged_note_of_names_is_refused_in_words(campaign, text) -> None:
    (campaign / NOTE).write_text(text)
    with pytest.raises(UsageError, match="damaged"):
        names_noted(campaign)


def test_every_stored_command_line_is_listed_once_with_its_number_of_runs(campaign) -> None:
    """A secret without a recognizable form is only found by a person who reads the lines."""
    for attempt in (1, 2):
        folder = campaign / f"runs/b01-p001-{attempt}"
        folder.mkdir(exist_ok=True)
        words = ["node", "--spec", f"/x/runs/.b01-p001-{attempt}.partial/spec.json", "hunter2"]
        child = {"argv": ["sh", "-c", "echo a\necho mara"]}
        document = {"commands": {"ping": words, "odd": [1]}, "members": {"command": [child, 3]}}
        (folder / "run.json").write_text(json.dumps(document))
    done, files = bundled(campaign, Names(users=("mara",)))
    assert done.commands == {
        "node --spec /x/runs/*/spec.json hunter2": 2,
        r"sh -c 'echo a\necho [user]'": 2,
    }
    assert files["commands.txt"].decode().splitlines()[0].startswith("2× node ")


def test_a_file_with_the_name_of_one_that_the_archive_adds_is_left_out(campaign) -> None:
    for name in ("README.md", "SHA256SUMS", "commands.txt"):
        (campaign / name).write_text("mine")
    done, files = bundled(campaign)
    assert b"mine" not in files["README.md"] + files["SHA256SUMS"]
    assert [line.partition(":")[0] for line in done.left_out] == [
        "README.md", "SHA256SUMS", "commands.txt",
    ]  # fmt: skip
