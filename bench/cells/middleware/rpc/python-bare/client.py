"""`client.py HOST PORT WARM CALLS`: calls per second of a JSON-RPC loop, without a kit."""

from __future__ import annotations

import json
import sys
import time

import requests

TEXT = "Hello World"
HEADERS = {"Content-Type": "application/json"}


def main(host: str, port: str, warm: int, calls: int) -> None:
    url = f"http://{host}:{port}/api"
    session = requests.Session()
    session.trust_env = False  # like the cell, do not use a proxy from the environment

    def call(number: int) -> None:
        body = {"jsonrpc": "2.0", "id": number, "method": "echo", "params": [TEXT]}
        response = session.post(url, data=json.dumps(body).encode(), headers=HEADERS, timeout=5)
        found = response.json()
        if (response.status_code, found.get("id"), found.get("result")) != (200, number, TEXT):
            sys.exit(f"{url}: {response.status_code} {found}, not {TEXT!r}")

    call(0)
    print("begun", flush=True)
    for number in range(1, warm + 1):
        call(number)
    start_ns = time.monotonic_ns()
    print("warm", flush=True)
    for number in range(1, calls + 1):
        call(number)
    print(calls * 1e9 / (time.monotonic_ns() - start_ns))


main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
