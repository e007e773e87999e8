"""First sentences of the page for rankings of alternatives and for studies with flows."""
