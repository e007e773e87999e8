"""A client of the bridge in Python, on roslibpy."""

from declaration import main

if __name__ == "__main__":
    main(allowed={"server": ("websocket",), "encoding": ("json",)})
