"""`client.py HOST PORT WARM CALLS`: calls per second of a loop on requests, without a kit."""

from __future__ import annotations

import sys
import time

import requests

TEXT = b"Hello World"
HEADERS = {"Content-Type": "text/plain; charset=utf-8"}


def main(host: str, port: str, warm: int, calls: int) -> None:
    url = f"http://{host}:{port}/echo"
    session = requests.Session()
    session.trust_env = False  # like the cell, do not use a proxy from the environment

    def call() -> None:
        response = session.post(url, data=TEXT, headers=HEADERS, timeout=5)
        if response.status_code != 200 or response.content != TEXT:
            sys.exit(f"{url}: {response.status_code} {response.content!r}, not {TEXT!r}")

    call()
    print("begun", flush=True)
    for _ in range(warm):
        call()
    start_ns = time.monotonic_ns()
    print("warm", flush=True)
    for _ in range(calls):
        call()
    print(calls * 1e9 / (time.monotonic_ns() - start_ns))


main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
