"""Scenarios for TLS: a valid certificate, and certificates that a client must reject (C-35)."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import trustme

from ..cell import Problem, Skipped
from ..group import HANG_S
from ..roles import PATTERNS
from ..scenario import ALWAYS, Bench, Scenario
from ..spec import READY_TIMEOUT_MS
from ..usage import refusal
from ..wire import await_line


def _switched_on(bench: Bench) -> dict[str, Any]:
    """Return the setting that enables TLS. Raise Skipped if the cell does not support TLS."""
    name = bench.cell.tls_setting
    if not name:
        raise Skipped("the middleware has no setting with the role tls")
    if bench.cell.excluded.get(name) is True:
        raise Skipped("the manifest excludes TLS for this cell")
    return {f"settings.{name}": True}


def _written(folder: Path, authority: trustme.CA, server: trustme.LeafCert) -> dict[str, str]:
    """Write the certificate files, and return the spec keys with their paths.

    With these keys a server presents `server`, and a client trusts `authority`.
    """
    folder.mkdir(parents=True)
    paths = {name: folder / f"{name}.pem" for name in ("authority", "certificate", "key")}
    authority.cert_pem.write_to_path(str(paths["authority"]))
    server.cert_chain_pems[0].write_to_path(str(paths["certificate"]))
    server.private_key_pem.write_to_path(str(paths["key"]))
    return {f"tls.{name}": str(path) for name, path in paths.items()}


def _addresses(bench: Bench) -> list[str]:
    """Return the addresses of all hosts on which nodes may listen."""
    return list(dict.fromkeys(place.address for place in bench.cell.places))


def trusted(pattern: str) -> Scenario:
    def check(bench: Bench) -> list[Problem]:
        changes = _switched_on(bench)
        authority = trustme.CA()
        server = authority.issue_cert(*_addresses(bench), "localhost")
        changes |= _written(bench.folder / "trusted", authority, server)
        return bench.whole_run(pattern, changes)

    return Scenario(f"tls[{pattern}]", ("C-35", *ALWAYS), check)


def refused(pattern: str) -> Scenario:
    """Check that a client ends with 4 and a reason if the server's certificate is invalid."""

    def check(bench: Bench) -> list[Problem]:
        changes = _switched_on(bench)
        authority = trustme.CA()
        past = datetime.now(timezone.utc) - timedelta(days=1)
        cases = {
            "expired": authority.issue_cert(*_addresses(bench), not_after=past),
            "of another authority": trustme.CA().issue_cert(*_addresses(bench)),
            "of another host": authority.issue_cert("elsewhere.example"),
        }
        problems: list[Problem] = []
        for index, (fault, certificate) in enumerate(cases.items()):
            folder = bench.folder / f"refused-{index}"
            keys = {**changes, **_written(folder, authority, certificate)}
            problems += _refusal(bench, pattern, keys, f"a certificate that is {fault}")
        return problems

    return Scenario(f"tls-refused[{pattern}]", ("C-35",), check)


def _refusal(bench: Bench, pattern: str, keys: dict[str, Any], case: str) -> list[Problem]:
    """Return the breaches of a client that must reject a server; both specs contain `keys`."""

    listener = bench.single(
        {**bench.lone_spec(pattern, bench.cell.listening_role(pattern)), **keys}
    )
    try:
        endpoints = await_line(listener, "LISTENING", "C-06")["endpoints"]
        spec = {
            **bench.lone_spec(pattern, PATTERNS[pattern].sender, ready_timeout_ms=1_500),
            **keys,
        }
        spec["run"], spec["peers.endpoints"] = listener.spec["run"], endpoints
        return refusal(bench.single(spec), 4, "C-35", case, READY_TIMEOUT_MS / 1000 + HANG_S)[0]
    finally:
        listener.kill()


def scenarios(patterns: list[str]) -> list[Scenario]:
    services = [pattern for pattern in patterns if pattern == "service"]
    return [scenario(pattern) for pattern in services for scenario in (trusted, refused)]
