"""wattwire measures what a message costs."""

__version__ = "0.1.0"
