"""`client.py HOST PORT WARM CALLS`: calls per second of a loop on a grpcio stub, without a kit."""

from __future__ import annotations

import sys
import time

import grpc
import wattwire_pb2 as proto
import wattwire_pb2_grpc as stubs

TEXT = "Hello World"


def main(host: str, port: str, warm: int, calls: int) -> None:
    with grpc.insecure_channel(f"{host}:{port}") as channel:
        text = stubs.CallsStub(channel).Text

        def call() -> None:
            reply = text(proto.TextPayload(data=TEXT), timeout=5)
            if reply.data != TEXT:
                sys.exit(f"{host}:{port}: {reply.data!r}, not {TEXT!r}")

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
