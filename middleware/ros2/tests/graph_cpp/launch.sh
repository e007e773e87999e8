#!/bin/sh
# Start listener, relay and talker of the program $1, for $2 messages. All end by themselves.
"$1" listener /dev/null &
"$1" relay /dev/null &
relay=$!
"$1" talker /dev/null "$2" &
wait "$relay" || echo "relay ended with code $?"
wait
