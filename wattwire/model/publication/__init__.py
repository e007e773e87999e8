"""Parse what a study states about a publication."""
