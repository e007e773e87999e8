# frozen_string_literal: true

# TCP node: length-prefixed frames, one connection for each pair of nodes.
require 'wattwire'
require_relative 'topic'
require_relative 'service'

Wattwire.run(
  'publisher' => Topic.method(:publish), 'subscriber' => Topic.method(:subscribe),
  'client' => Service.method(:client), 'server' => Service.method(:server),
  'ping' => Service.method(:client), 'pong' => Service.method(:server)
)
