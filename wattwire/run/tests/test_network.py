"""Test that service processes have the address of their host (C-38)."""

from __future__ import annotations

import base64
from pathlib import Path
from types import SimpleNamespace

from wattwire.hosts.hosts import here
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
