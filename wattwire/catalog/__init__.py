"""Discovery of the open folders' members. There is no central list: a manifest defines a member."""

from wattwire.catalog.catalog import Catalog, Cell, Middleware, default_roots
from wattwire.catalog.home import home

__all__ = ["Catalog", "Cell", "Middleware", "default_roots", "home"]
