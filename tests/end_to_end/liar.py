"""A server node without a kit. It misbehaves as specified by LIE.

    flip      answers each call with its last character changed
    error     answers each call with HTTP 500 and a page
    gateway   answers each call with HTTP 503 and a page, like a proxy without its server
    object    answers each call with a JSON-RPC error object and status 200
    half      answers every second call with HTTP 500 and a page, the others correctly
    nowhere   reports an endpoint where no process listens
    silence   closes every connection immediately
    tls       uses HTTPS with the certificate and the key in the folder LIE_CERTIFICATE

Probes (C-17) get a correct answer, so that a client reaches its window. The node uses only the
standard library, because it runs in the environment of any cell.
"""

from __future__ import annotations

import http.server
import json
import os
import re
import socket
import ssl
import struct
import sys
import threading
from pathlib import Path

LIE = os.environ["LIE"]
HOST = "127.0.0.1"
STATUS = {"error": 500, "gateway": 503, "half": 500}
PROBE = "ff" * 6
"""How the counter of a probe begins a payload of text (C-20)."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        call = json.loads(body) if body.startswith("{") else None
        text = call["params"][0] if call else body
        probe = text.startswith(PROBE)
        odd = int(text[1], 16) % 2 == 1  # the lowest byte of the counter comes first
        if LIE in STATUS and not probe and (LIE != "half" or odd):
            self.answer(STATUS[LIE], "<h1>Oops</h1>")
            return
        if LIE == "object" and call and not probe:
            error = {"code": -32000, "message": "overloaded"}
            self.answer(200, json.dumps({"jsonrpc": "2.0", "id": call["id"], "error": error}))
            return
        honest = probe or LIE == "half"
        text = text if honest else text[:-1] + ("A" if text[-1] != "A" else "B")
        if call:
            text = json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": text})
        self.answer(200, text)

    def answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", self.headers["Content-Type"])
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Print nothing, because standard error is for errors."""


def listen() -> tuple[str, int]:
    """Start to serve in separate threads; return the scheme and the port."""
    if LIE in ("nowhere", "silence"):
        listener = socket.create_server((HOST, 0))
        port = listener.getsockname()[1]
        if LIE == "nowhere":
            listener.close()
        else:
            threading.Thread(target=hang_up, args=(listener,), daemon=True).start()
        return "http", port
    server = http.server.ThreadingHTTPServer((HOST, 0), Handler)
    if LIE == "tls":
        folder = Path(os.environ["LIE_CERTIFICATE"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
        context.set_alpn_protocols(["h2", "http/1.1"])
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return "https" if LIE == "tls" else "http", server.server_address[1]


def hang_up(listener: socket.socket) -> None:
    while True:
        listener.accept()[0].close()


def main() -> None:
    given = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
    spec = json.loads(Path(given["--spec"]).read_text())
    lines = os.fdopen(3, "w", buffering=1)
    scheme, port = listen()
    grpc = spec["cell"].startswith("grpc/")
    endpoint = f"{HOST}:{port}" if grpc else f"{scheme}://{HOST}:{port}/echo"
    print("LISTENING", json.dumps({"endpoints": [endpoint]}), file=lines)
    ready = {
        "matched": None, "startup_ns": 1, "discovery_ns": None, "effective": {},
        "library": {"name": "liar", "version": "1", "build": LIE},
        "guarantee": {"delivery": "reliable", "ordering": "none", "overload": "block"},
    }  # fmt: skip
    print("READY", json.dumps(ready), file=lines)
    for line in sys.stdin:
        if re.match("STOP", line):
            header = struct.pack(
                "<8sHHHBBHHIQQQ16x", b"WATTWIRE", 1, 64, 40, 2, 1, spec["node"], 0, 0, 0, 0,
                spec["payload.seed"],
            )  # fmt: skip
            (Path(given["--out"]) / "samples.bin").write_bytes(header)
            counts = ("sent", "received", "recorded", "overflow", "foreign", "corrupt", "probes")
            print("DONE", json.dumps(dict.fromkeys(counts, 0)), file=lines)
            return
    os._exit(5)


if __name__ == "__main__":
    main()
