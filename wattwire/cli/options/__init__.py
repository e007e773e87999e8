"""Add the options that several commands share. No module here imports what the options do."""
