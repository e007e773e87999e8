"""Discover the members of the open folders by globbing for their manifests."""

from wattwire.catalog.catalog import Catalog, Cell, Middleware, default_roots
from wattwire.catalog.home import home

__all__ = ["Catalog", "Cell", "Middleware", "default_roots", "home"]
