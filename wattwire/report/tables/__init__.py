"""Tables that several sections share."""
