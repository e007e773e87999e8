"""Values only: no file of a campaign, no process, no network is touched here."""
