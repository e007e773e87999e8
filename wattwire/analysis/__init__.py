"""A campaign as numbers: contrasts, control runs, stopping, warm-up. No page is known here."""
