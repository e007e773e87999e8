"""Test that the counters of the broker are read over one connection, which is silent in between."""

from __future__ import annotations

import contextlib
import json
import queue
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from wattwire.catalog import Catalog
from wattwire.model.errors import MissingError
from wattwire.rig import AgentClient, Builder

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "middleware" / "mqtt" / "environment" / "counters.py"
CONFIGURATION = """
listener {port} 127.0.0.1
allow_anonymous true
persistence false
sys_interval 1
"""
HANG_S = 60.0
UPDATES_S = 5.0
"""Mosquitto 2.0 updates its topics every 2 s, so this time has two updates."""
PUBLISHED = 7


class Proxy:
    """A TCP proxy in front of the broker that counts connections and bytes in both directions."""

    def __init__(self, port: int) -> None:
        self._broker_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.connections = self.bytes = 0
        self._sockets = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                broker = socket.create_connection(("127.0.0.1", self._broker_port))
                self.connections += 1
                self._sockets += [client, broker]
                for ends in ((client, broker), (broker, client)):
                    threading.Thread(target=self._copy, args=ends, daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(65_536):
                self.bytes += len(piece)
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        for each in self._sockets:
            each.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture
def python(tmp_path: Path) -> Iterator[Path]:
    """Return the Python program of the middleware's environment."""
    with contextlib.closing(AgentClient(tmp_path / "agent")) as agent:
        try:
            build = Builder(agent).cell(Catalog([ROOT]).cell("mqtt/python"))
        except MissingError as reason:
            pytest.skip(str(reason))
        yield Path(build.words["environment"]) / "venv" / "bin" / "python"


@pytest.fixture
def broker_port(tmp_path: Path) -> Iterator[int]:
    """Yield the port of a running broker."""
    program = shutil.which("mosquitto")
    if program is None:
        pytest.skip("mosquitto is not on PATH")
    port, path = free_port(), tmp_path / "mosquitto.conf"
    path.write_text(CONFIGURATION.format(port=port))
    with subprocess.Popen([program, "-c", path], stderr=subprocess.DEVNULL) as broker:
        deadline_s = time.monotonic() + HANG_S
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert time.monotonic() < deadline_s and broker.poll() is None
            time.sleep(0.01)
        yield port
        broker.terminate()


class Readings:
    """The program that reads the counters."""

    def __init__(self, python: Path, port: int) -> None:
        self._process = subprocess.Popen(
            [python, PROGRAM, "127.0.0.1", str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)

    def take(self) -> dict[str, int]:
        """Return the next reading, which an empty line ends."""
        counters: dict[str, int] = json.loads(self._lines.get(timeout=HANG_S))
        assert self._lines.get(timeout=HANG_S) == "\n"
        return counters

    def request(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def end(self) -> int:
        """Close the input and return the exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(HANG_S)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(HANG_S)


PUBLISH = """
import sys, paho.mqtt.client as mqtt
client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
client.connect("127.0.0.1", int(sys.argv[1]))
client.loop_start()
for _ in range(int(sys.argv[2])):
    client.publish("a", b"payload", qos=1).wait_for_publish(60)
client.disconnect()
"""


def test_readings_use_one_connection_on_which_nothing_passes_between_them(
    python: Path, broker_port: int
) -> None:
    proxy = Proxy(broker_port)
    readings = Readings(python, proxy.port)
    try:
        before = readings.take()
        at_first = proxy.bytes
        assert at_first > 0
        # The messages of a run, by another connection.
        publish = [python, "-c", PUBLISH, str(broker_port), str(PUBLISHED)]
        subprocess.run(publish, check=True, timeout=HANG_S)
        time.sleep(UPDATES_S)
        assert proxy.bytes == at_first
        readings.request()
        after = readings.take()
        assert after["messages_received"] - before["messages_received"] == PUBLISHED
        assert proxy.connections == 1 and proxy.bytes > at_first
        assert readings.end() == 0
    finally:
        readings.kill()
        proxy.close()
