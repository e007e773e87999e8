"""Parse what a study states about a publication."""

READER_FILE = "replication.py"
"""Name of the file in the folder of a study that reads the data of its paper."""
