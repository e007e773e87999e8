"""Values only: nothing here uses the files of a campaign, processes or the network."""
