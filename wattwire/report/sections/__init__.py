"""The page's parts: a file each, named as the part's anchor on the page."""
