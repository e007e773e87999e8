"""Sections of the page. The name of a file is the anchor of its section."""
