"""Finds what the open folders hold. There is no list anywhere: a manifest makes a thing exist."""

from wattwire.catalog.catalog import Catalog, Cell, Middleware, default_roots

__all__ = ["Catalog", "Cell", "Middleware", "default_roots"]
