"""The verbs of the command line: one module per verb, with its options."""
