"""A campaign as numbers: contrasts, control runs, stopping, warm-up; independent of any report."""
