"""Tables shared by several sections of the page, or by papers."""
