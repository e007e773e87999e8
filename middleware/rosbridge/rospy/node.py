"""The robot's side: a ROS node that does not know the bridge, with the roles of ros1/python."""

from declaration import main

if __name__ == "__main__":
    main()
