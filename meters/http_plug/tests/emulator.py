"""Emulate a Shelly of the second generation and a plug with Tasmota on loopback HTTP."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SHELLY = "/rpc/Switch.GetStatus?id=0"
TASMOTA = "/cm?cmnd=Status%208"


class Plug:
    """A plug whose counter grows in the steps of its kind.

    It grows with the constant power that the plug states, or follows `energy_j`, the energy (J) at
    a time (s) of the monotonic clock.
    """

    def __init__(
        self,
        power_w: float,
        step_wh: float = 0.001,
        energy_j: Callable[[float], float] | None = None,
    ) -> None:
        self.power_w, self.step_wh = power_w, step_wh
        self._energy_j = energy_j
        self.requests: list[str] = []
        self.answer: tuple[int, bytes] | None = None
        """Status and body of every answer, instead of the counter."""
        self.hang_s = 0.0
        self._began_s = time.monotonic()
        plug = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                plug.requests.append(self.path)
                time.sleep(plug.hang_s)
                status, body = plug.answer or plug.status(self.path)
                with contextlib.suppress(ConnectionError):  # the reader did not wait
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the server; requests are refused from now on."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def energy_wh(self) -> float:
        """Return the counter (Wh), in its steps."""
        now_s = time.monotonic()
        grown_j = self.power_w * (now_s - self._began_s)
        if self._energy_j is not None:
            grown_j = self._energy_j(now_s)
        energy_wh = 100.0 + grown_j / 3600.0
        return int(energy_wh / self.step_wh) * self.step_wh

    def status(self, path: str) -> tuple[int, bytes]:
        """Return the answer to a request."""
        if path == SHELLY:
            energy = {"total": round(self.energy_wh(), 3), "by_minute": [0.0, 0.0, 0.0],
                      "minute_ts": int(time.time()) // 60 * 60}  # fmt: skip
            document: object = {"id": 0, "output": True, "apower": self.power_w, "voltage": 230.0,
                                "aenergy": energy}  # fmt: skip
        elif path == TASMOTA:
            energy = {"Total": round(self.energy_wh() / 1000, 8), "Power": round(self.power_w)}
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S")
            document = {"StatusSNS": {"Time": stamp, "ENERGY": energy}}
        else:
            return 404, b"No handler for this path"
        return 200, json.dumps(document).encode()
