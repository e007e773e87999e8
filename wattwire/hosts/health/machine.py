"""Check what hosts of one boot share: buffers, clock, disk and programs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from wattwire.catalog.home import debian_packages
from wattwire.hosts.clocks import PIPE
from wattwire.hosts.health.finding import (
    MISSING,
    NOTE,
    OTHER_RIG,
    Finding,
    as_root,
    finding,
    kernel_values,
    output_of,
)
from wattwire.hosts.host import Host
from wattwire.model.rig import LOCAL, NETNS, SSH
from wattwire.model.setting_purposes import RECEIVE_BUFFER_BYTES, SEND_BUFFER_BYTES

BUFFER_BYTES_MIN = 4 << 20
"""Buffer for two messages of 2 MB, which the default of Linux (212,992 bytes) does not hold."""
BUFFER_BYTES = 16 << 20
DISK_BYTES_MIN = 1 << 30
BAND_NS_MAX = 1_000_000
NS_PER_S, NS_PER_US = 1e9, 1e3
APT = "apt-get"


def machine_findings(
    host: Host, version: str, languages: Mapping[str, Sequence[str]], is_only: bool
) -> Iterator[Finding]:
    """Yield the findings on the machine of a host.

    `languages` are the programs that each needs. `is_only` means that the rig has no other machine,
    so that all times are of one clock.
    """
    yield from agent_findings(host, version)
    yield from buffer_findings(host)
    yield discipline_finding(host, is_only)
    yield disk_finding(host)
    yield from program_findings(host, languages)


def agent_findings(host: Host, version: str) -> Iterator[Finding]:
    """Yield the version of the host's agent."""
    hello = host.agent.hello
    evidence = f"version {hello['version']}, build {hello['build'][:12]}"
    if hello["version"] == version:
        yield finding(host, "agent", evidence)
        return
    yield finding(
        host, "agent", evidence,
        f"this wattwire is {version}: the hosts of a campaign then measure differently",
        "make agent", OTHER_RIG,
    )  # fmt: skip


def buffer_findings(host: Host) -> Iterator[Finding]:
    """Yield the limits of socket buffers."""
    for name, purpose in (
        ("net.core.rmem_max", RECEIVE_BUFFER_BYTES), ("net.core.wmem_max", SEND_BUFFER_BYTES),
    ):  # fmt: skip
        value = kernel_values(host, [name]).get(name)
        remedy = as_root(host, f"sysctl -w {name}={BUFFER_BYTES}")
        factor = f"a setting with the purpose {purpose}, with levels up to {BUFFER_BYTES}"
        if value is None:
            cause = "the kernel does not show the limit in a network namespace"
            yield finding(host, name, "not readable", cause, remedy, factor)
        elif value < BUFFER_BYTES_MIN:
            cause = (
                f"no socket gets more than {value} bytes, whatever it requests: bursts and large "
                "messages are dropped or wait"
            )
            yield finding(host, name, f"{value} bytes", cause, remedy, factor)
        else:
            yield finding(host, name, f"{value} bytes")


# -- clocks --------------------------------------------------------------------------------------


def discipline_finding(host: Host, is_only: bool = False) -> Finding:
    """Return which program steers the clock, and what the kernel reports."""
    daemons, synchronised = _daemons(host)
    kernel, is_kernel_synchronised = _kernel_clock(host)
    evidence = "; ".join([*daemons, *kernel]) or "no chronyc, timedatectl, ntpq or adjtimex"
    if synchronised or is_kernel_synchronised or is_only:
        return finding(host, "clock discipline", evidence)
    return finding(
        host, "clock discipline", evidence,
        "nothing steers the clock: its rate can be off by tens of ppm, which is tens of µs of "
        "one-way latency per second between the exchanges of timestamps",
        as_root(host, "apt-get install chrony"),
        f"duration of the window: the clock band grows with it; {OTHER_RIG}",
    )  # fmt: skip


def _daemons(host: Host) -> tuple[list[str], bool]:
    """Return what the programs of clock daemons print, and whether one is synchronised."""
    texts, synchronised = [], False
    tracking = (output_of(host, "chronyc", "-c", "tracking") or "").strip().split(",")
    if len(tracking) >= 14:
        texts.append(f"chrony: stratum {tracking[2]}, {tracking[4]} s off, {tracking[13]}")
        synchronised = tracking[13] == "Normal"
    shown = output_of(host, "timedatectl", "show", "-p", "NTP", "-p", "NTPSynchronized")
    if shown:
        texts.append(f"timedatectl: {', '.join(shown.split())}")
        synchronised |= "NTPSynchronized=yes" in shown
    status = output_of(host, "ntpq", "-c", "rv 0 leap,stratum,offset")
    if status:
        texts.append(f"ntp: {' '.join(status.split())}")
        synchronised |= "leap=00" in status
    return texts, synchronised


def _kernel_clock(host: Host) -> tuple[list[str], bool]:
    """Return what adjtimex(2) reports, and whether the kernel takes the clock as synchronised."""
    adjustment = host.agent.request("clock", count=1)["adjustment"]
    if adjustment["rate_ppm"] is None:
        return [], False
    synchronised = bool(adjustment["synchronised"])
    state = "synchronised" if synchronised else "not synchronised"
    rate_ppm, error_us = adjustment["rate_ppm"], adjustment["error_us_max"]
    return [f"kernel: {state}, rate {rate_ppm:+.3f} ppm, error ≤ {error_us} µs"], synchronised


def clock_finding(host: Host) -> Finding:
    """Measure the relation of a host's clock to the controller's."""
    host.relate_clock()
    assert host.relation is not None
    exchange = host.relation
    if exchange.is_own:
        return finding(host, "clock offset", "0: it is the controller's clock")
    band_us = host.band_ns / NS_PER_US
    evidence = (
        f"{host.offset_ns / NS_PER_S:+.6f} s ± {band_us:.1f} µs (monotonic), "
        f"{_wall_offset_ns(host) / NS_PER_S:+.6f} s (wall clock); {exchange.count} exchanges by "
        f"{exchange.way}, round trip {host.round_trip_ns / NS_PER_US:.0f} µs"
    )
    if exchange.way != PIPE and host.band_ns <= BAND_NS_MAX:
        return finding(host, "clock offset", evidence)
    command = ""
    if exchange.way == PIPE and host.spec.kind == SSH:
        command = "permit UDP from this machine to the host's ports in its firewall"
    return finding(
        host, "clock offset", evidence,
        f"one-way latencies have an error of up to {band_us:.1f} µs (clock_band_us)",
        command,
        'pattern = "pingpong": a round trip needs one clock; or delay_variation_p99_us',
    )  # fmt: skip


def _wall_offset_ns(host: Host) -> int:
    """Return the host's CLOCK_REALTIME minus the controller's, as both relate to monotonic."""
    (reading,) = host.agent.request("clock", count=1)["triples"]
    host_ns = int(reading["realtime_ns"]) - int(reading["monotonic_ns"])
    return host_ns + host.offset_ns - (time.time_ns() - time.monotonic_ns())


# -- disk and programs ---------------------------------------------------------------------------


def disk_finding(host: Host) -> Finding:
    """Return the free space for builds and for the records of runs."""
    folder = host.agent.hello["cache"]
    free_bytes = host.free_disk_bytes(Path(folder))
    evidence = f"{free_bytes / 1e9:.1f} GB free in {folder}"
    if free_bytes >= DISK_BYTES_MIN:
        return finding(host, "disk", evidence)
    return finding(
        host, "disk", evidence, "builds and records of long runs may not fit",
        "wattwire clean" if host.spec.kind in (LOCAL, NETNS) else f"ssh {host.spec.to} df -h",
        "none: runs fail", state=MISSING,
    )  # fmt: skip


def program_findings(host: Host, languages: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    """Yield the version of Python, and the languages that the host cannot build."""
    version = (output_of(host, "python3", "--version") or "").strip()
    cause = "" if version else "cells in Python cannot run on the host"
    remedy = "" if version else as_root(host, "apt-get install python3 python3-venv")
    yield finding(host, "python", version or "not in PATH", cause, remedy, "cell")
    wanted = sorted({name for names in languages.values() for name in names} | {APT})
    paths = host.agent.request("which", names=wanted)["paths"]
    lacking = {
        language: [name for name in names if not paths.get(name)]
        for language, names in sorted(languages.items())
    }
    complete = [language for language, names in lacking.items() if not names]
    yield finding(host, "languages", ", ".join(complete) or "none")
    known_packages = debian_packages() if paths.get(APT) else {}
    for language, names in lacking.items():
        if names:
            packages = dict.fromkeys(known_packages[n] for n in names if n in known_packages)
            yield finding(
                host, f"language {language}", f"lacks {', '.join(names)}",
                "its cells cannot be built on the host, so treatments that place them there fail",
                as_root(host, f"{APT} install {' '.join(packages)}") if packages else "", "cell",
                state=NOTE,
            )  # fmt: skip
