"""Collect the meters outside the machine that a command line and a rig name."""

from __future__ import annotations

import argparse

from wattwire.catalog import Catalog
from wattwire.model.outside_meters import OutsideMeter, meters_of_options, meters_of_rig
from wattwire.model.rig import ONE_HOST, Rig


def chosen(
    options: argparse.Namespace, catalog: Catalog, rig: Rig = ONE_HOST
) -> tuple[OutsideMeter, ...]:
    """Return the meters of --meter and of a rig. Raise UsageError for an unknown one."""
    if not options.meters and not rig.meters:
        return ()
    manifests = catalog.meter_manifests()
    return (
        *meters_of_rig(rig.meters, rig.hosts, manifests, rig.source),
        *meters_of_options(options.meters, manifests),
    )
