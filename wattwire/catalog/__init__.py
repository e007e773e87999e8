"""Finds what the open folders hold. There is no list anywhere: a manifest makes a thing exist."""

from wattwire.catalog.catalog import Catalog, Cell, Middleware, default_roots
from wattwire.catalog.home import home

__all__ = ["Catalog", "Cell", "Middleware", "default_roots", "home"]
