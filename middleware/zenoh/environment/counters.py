"""Print the counters of a Zenoh router as JSON, from its admin space.

Usage: counters.py ENDPOINT [AUTHORITY CERTIFICATE KEY], with the paths for an endpoint of TLS. The
exit code is 1 if no router answers. A router that was built without statistics has only its number
of sessions.
"""

from __future__ import annotations

import gzip
import json
import re
import sys

import zenoh

ANSWER_S = 4.0
COUNTER = re.compile(r"^# TYPE (\w+) counter$", re.MULTILINE)
SAMPLE = re.compile(r"^(\w+?)(?:_total)?(?:\{[^}]*\})? (\d+(?:\.\d+)?)$", re.MULTILINE)


def main() -> int:
    config = zenoh.Config()
    for key, value in {
        "mode": "client",
        "connect/endpoints": [sys.argv[1]],
        "scouting/multicast/enabled": False,
        "scouting/gossip/enabled": False,
    }.items():
        config.insert_json5(key, json.dumps(value))
    if sys.argv[2:]:
        names = ("root_ca_certificate", "connect_certificate", "connect_private_key")
        table = {**dict(zip(names, sys.argv[2:], strict=True)), "enable_mtls": True}
        config.insert_json5("transport/link/tls", json.dumps(table))
    try:
        session = zenoh.open(config)
    except zenoh.ZError as error:
        sys.stderr.write(f"no router at {sys.argv[1]}: {error}\n")
        return 1
    with session:
        counters = counters_of(session)
    print(json.dumps(counters))
    return 0 if counters else 1


def counters_of(session: zenoh.Session) -> dict[str, float]:
    """Return the sessions of the router without this one, and its OpenMetrics counters."""
    counters: dict[str, float] = {}
    for reply in session.get("@/*/router", timeout=ANSWER_S):
        if reply.ok is not None:
            state = json.loads(reply.ok.payload.to_bytes())
            counters["sessions"] = len(state["sessions"]) - 1
    for reply in session.get("@/*/router/metrics", timeout=ANSWER_S):
        if reply.ok is not None:
            counters |= parsed(text_of(reply.ok))
    return counters


def text_of(sample: zenoh.Sample) -> str:
    payload = sample.payload.to_bytes()
    return (gzip.decompress(payload) if "gzip" in str(sample.encoding) else payload).decode()


def parsed(metrics: str) -> dict[str, float]:
    """Return the sum of each counter over its labels."""
    names = set(COUNTER.findall(metrics))
    sums: dict[str, float] = {}
    for name, value in SAMPLE.findall(metrics):
        if name in names:
            sums[name] = sums.get(name, 0) + float(value)
    return sums


if __name__ == "__main__":
    sys.exit(main())
