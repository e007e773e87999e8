"""The page's sections: one file each, named as the section's anchor on the page."""
