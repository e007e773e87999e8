"""Discover the members of the open folders by globbing for their manifests."""

from wattwire.catalog.bridges import Bridge
from wattwire.catalog.catalog import Catalog, default_roots
from wattwire.catalog.cells import Cell, Middleware
from wattwire.catalog.home import home
from wattwire.catalog.probes import Probe

__all__ = ["Bridge", "Catalog", "Cell", "Middleware", "Probe", "default_roots", "home"]
