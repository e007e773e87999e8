"""A client of the bridge in Python, on websockets and the JSON of the standard library."""

from declaration import main

if __name__ == "__main__":
    main()
