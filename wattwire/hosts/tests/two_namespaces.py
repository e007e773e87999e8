"""Define a rig of two namespaces with one network between them."""

DOCUMENT = {
    "hosts": {"robot": {"kind": "netns"}, "edge": {"kind": "netns"}},
    "networks": {"plain": {}},
}
