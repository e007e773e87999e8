# frozen_string_literal: true

# TCP node: length-prefixed frames, one connection for each pair of nodes.
require 'wattwire'
require_relative 'topic'
require_relative 'service'

Wattwire.run(
  roles: {
    'publisher' => Topic.method(:publish), 'subscriber' => Topic.method(:subscribe),
    'client' => Service.method(:client), 'server' => Service.method(:server),
    'ping' => Service.method(:client), 'pong' => Service.method(:server)
  },
  settings: {
    'tcp_nodelay' => Wattwire::BOOLEAN, 'tcp_quickack' => String, 'connections' => Integer,
    'writes' => Integer, 'receive_buffer_bytes' => Integer, 'send_buffer_bytes' => Integer,
    'bind_address' => String
  },
  capabilities: %w[encoding.bytes encoding.text pacing.kit loop.open loop.closed reply.echo
                   reply.ack reply.literal literal async_client],
  offers: { 'connections' => [1], 'tcp_quickack' => %w[default on] }
)
