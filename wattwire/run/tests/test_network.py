"""Test that service processes and certificates have the address of their host (C-38, C-35)."""

from __future__ import annotations

import base64
from pathlib import Path
from types import SimpleNamespace

from cryptography import x509

from wattwire.hosts.hosts import here
from wattwire.run.certificates import make_certificates
from wattwire.run.network import HOST_ADDRESS
from wattwire.run.services import start_service

SERVICE = {
    "argv": ["broker", "--listen", "{address}:{port}"],
    "ports": 1,
    "files": {"broker.conf": "listener {port} {address}"},
    "endpoints": ["{address}:{port}"],
}


class Agent:
    """Agent that writes files and offers one port."""

    def request(self, operation, **fields):
        if operation == "write_file":
            content = base64.b64decode(fields["base64"])
            Path(fields["path"]).write_bytes(content)
            return {}
        if operation == "folder":
            Path(fields["path"]).mkdir(parents=True)
            return {}
        if operation == "which":
            return {"paths": {}}
        assert (operation, fields) == ("ports", {"count": 1})
        return {"ports": [4711]}

    def submit(self, operation, **fields):
        return self.request(operation, **fields)

    def reply(self, operation, future):
        return future


class Processes:
    """Processes that are ready at once; `argv` is the command of the last one."""

    def __init__(self, folder):
        self.states = {}
        self.argv = []
        self._folder = folder

    def host_of(self, process):
        return here(Agent())

    def out_of(self, process):
        return self._folder / "out" / process

    def spawn(self, process, argv, env, lines):
        self.states[process] = SimpleNamespace(exit=None)
        self.argv = argv

    def drain(self):
        pass


def test_a_service_gets_the_address_of_its_host_in_command_files_and_endpoints(tmp_path):
    processes = Processes(tmp_path)
    service = start_service(processes, "broker", SERVICE, HOST_ADDRESS, "ww0", 1.0)
    assert service.endpoints == [f"{HOST_ADDRESS}:4711"]
    assert processes.argv == ["broker", "--listen", f"{HOST_ADDRESS}:4711"]
    (configuration,) = tmp_path.glob("out/*/broker.conf")
    assert configuration.read_text() == f"listener 4711 {HOST_ADDRESS}"


def test_a_certificate_is_for_the_addresses_of_the_hosts():
    _, content = make_certificates([HOST_ADDRESS, "10.77.0.2"])["tls.certificate"]
    certificate = x509.load_pem_x509_certificate(content)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = {*map(str, names.get_values_for_type(x509.IPAddress))}
    assert addresses == {HOST_ADDRESS, "10.77.0.2"}
