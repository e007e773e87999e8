"""Discover the open folders' members by their manifests, without a central list."""

from wattwire.catalog.catalog import Catalog, Cell, Middleware, default_roots
from wattwire.catalog.home import home

__all__ = ["Catalog", "Cell", "Middleware", "default_roots", "home"]
