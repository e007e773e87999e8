"""Shared code of cells over HTTP: a WSGI server with gunicorn, and a client with requests."""

from __future__ import annotations

import copy
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gunicorn
import requests
from gunicorn.app.base import BaseApplication
from wattwire_kit import Kit, SendFailed, Slot
from wattwire_kit.forked import Processes

GUARANTEE = ("reliable", "none", "block")
OK = 200
WorkerCounter = Callable[[], int]


# --- server ------------------------------------------------------------------------------


class _Gunicorn(BaseApplication):
    """A server of one application, configured only by `settings`."""

    def __init__(self, application: Any, settings: Mapping[str, Any]) -> None:
        self._application, self._settings = application, settings
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._settings.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        return self._application


def serve(
    kit: Kit, path: str, application: Callable[[Processes], Any], library: tuple[str, str, str]
) -> None:
    """Run a server or pong: gunicorn with one worker process.

    By default the worker closes each connection; with keep_alive it is gunicorn's threaded worker,
    which keeps connections.
    """
    processes = Processes(kit)
    secure = bool(kit.spec["tls.authority"])
    ended = threading.Event()
    endpoint: list[str] = []

    def listening(server: Any) -> None:
        host, port = server.LISTENERS[0].sock.getsockname()
        endpoint.append(f"http{'s' if secure else ''}://{host}:{port}{path}")
        kit.listening(endpoint)

    def ready() -> None:
        kit.ready(None, library, _effective(kit, configured), GUARANTEE)

    def end() -> None:
        ended.set()
        os.kill(os.getpid(), signal.SIGTERM)

    settings: dict[str, Any] = {
        "bind": f"{kit.spec['host.address']}:0",
        "loglevel": "error",
        "when_ready": listening,
        "post_fork": lambda _server, worker: processes.enter(worker.age - 1),
        "worker_exit": lambda _server, _worker: processes.leave(),
        "control_socket_disable": True,
    }
    if kit.setting("keep_alive") == "on":
        settings["worker_class"] = "gthread"
    if kit.setting("server_workers"):
        settings["workers"] = kit.setting("server_workers")
    if secure:
        settings |= {"certfile": kit.spec["tls.certificate"], "keyfile": kit.spec["tls.key"]}
    server = _Gunicorn(application(processes), settings)
    configured = server.cfg
    processes.attend(configured.workers, ready, end)
    try:
        server.run()
    except SystemExit:
        if processes.is_child:
            os._exit(0)
    if not ended.is_set():
        os._exit(128 + signal.SIGTERM)  # a SIGTERM from outside ends a node at once (C-09)
    processes.collect()


def _effective(kit: Kit, configured: Any) -> dict[str, Any]:
    keeps_connections = configured.worker_class_str != "sync" and configured.keepalive > 0
    effective = {
        "keep_alive": keeps_connections,
        "tcp_nodelay": True,  # gunicorn sets it on every socket that it listens on
        "tls": "on" if kit.spec["tls.authority"] else "none",
        "server_workers": configured.workers,
        "server": f"gunicorn {gunicorn.__version__} {configured.worker_class_str}",
        "transport": "http/1.1 over tcp",
    }
    return effective | ({"http_version": "1.1"} if "settings.http_version" in kit.spec else {})


# --- client ------------------------------------------------------------------------------


class Caller:
    """Makes calls with `requests`, in the kit's thread or in one thread per open call."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._url = kit.spec["peers.endpoints"][0]
        self._local = threading.local()

    def _session(self) -> requests.Session:
        session: requests.Session | None = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = requests.Session()
            session.trust_env = False  # ignores proxies of the environment (C-01)
            session.verify = self._kit.spec["tls.authority"] or True
            if self._kit.setting("keep_alive") == "off":
                session.headers["Connection"] = "close"
        return session

    def post(self, body: bytes, content_type: str, timeout_s: float) -> requests.Response | None:
        """Return the response, or None at the timeout. Raise SendFailed if it failed (C-36)."""
        try:
            response = self._session().post(
                self._url, data=body, headers={"Content-Type": content_type}, timeout=timeout_s
            )
        except requests.Timeout:
            return None
        except requests.RequestException as error:
            raise SendFailed(str(error)) from error
        if response.status_code != OK:
            raise SendFailed(f"HTTP status {response.status_code}")
        return response

    def run(self, call: Callable[[Any, float], Any], library: tuple[str, str, str]) -> None:
        """Send probes, print READY and make the calls of the window; any thread may run `call`."""
        kit = self._kit
        discovery_ns = kit.probe(call)
        effective = {
            "keep_alive": kit.setting("keep_alive") != "off",
            "tcp_nodelay": True,  # urllib3 sets it on every connection
            "tls": "on" if kit.spec["tls.authority"] else "none",
            "transport": "http/1.1 over tcp",
        }
        if "settings.http_version" in kit.spec:
            effective["http_version"] = "1.1"
        kit.ready(1, library, effective, GUARANTEE, discovery_ns)
        if kit.spec["outstanding_max"] > 1 and kit.spec["loop"] == "open":
            overlap(kit, call)
        else:
            kit.call_all(call)


def overlap(kit: Kit, call: Callable[[Any, float], Any]) -> None:
    """Make overlapping calls, each in a thread of a pool (C-33)."""
    done = threading.Semaphore(0)
    timeout_s = kit.spec["timeout_ns"] / 1e9

    def make_call(slot: Slot, message: Any) -> None:
        try:
            reply = call(message, timeout_s)
            if reply is not None:
                kit.complete(slot, reply)
        except (SendFailed, OSError):
            kit.fail(slot)
        done.release()

    def begin(slot: Slot, buffer: Any) -> None:
        pool.submit(make_call, slot, copy.copy(buffer))

    def poll(timeout_s: float) -> None:
        done.acquire(timeout=timeout_s)

    with ThreadPoolExecutor(kit.spec["outstanding_max"]) as pool:
        kit.drive(begin, poll)


def python_build() -> str:
    return f"CPython {sys.version.split()[0]}"
