#!/bin/sh
# Start listener, relay and talker with the Python of $1, for $2 messages; end with the talker.
folder=$(dirname "$0")
"$1" "$folder/listener.py" &
listener=$!
"$1" "$folder/relay.py" &
relay=$!
sleep 2
"$1" "$folder/talker.py" "$2"
sleep 0.5
for process in "$relay" "$listener"; do # one after the other, so that their lines do not mix
  kill -TERM "$process"
  wait "$process"
done
