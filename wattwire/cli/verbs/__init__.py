"""The verbs of the command line: a file each, with its options."""
