"""`client.py HOST PORT CALLS`: calls per second of a loop on requests, without a kit."""

from __future__ import annotations

import sys
import time

import requests

TEXT = b"Hello World"
HEADERS = {"Content-Type": "text/plain; charset=utf-8"}


def main(host: str, port: str, calls: int) -> None:
    url = f"http://{host}:{port}/echo"
    session = requests.Session()
    session.trust_env = False  # as the cell, which takes no proxy from the environment

    def call() -> None:
        response = session.post(url, data=TEXT, headers=HEADERS, timeout=5)
        if response.status_code != 200 or response.content != TEXT:
            sys.exit(f"{url}: {response.status_code} {response.content!r}, not {TEXT!r}")

    call()
    begun_ns = time.monotonic_ns()
    print("begun", flush=True)
    for _ in range(calls):
        call()
    print(calls * 1e9 / (time.monotonic_ns() - begun_ns))


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
