# frozen_string_literal: true

# gRPC node: unary calls with the stubs generated from ../idl/wattwire.proto.
require 'wattwire'
require_relative 'client'
require_relative 'server'

Wattwire.run(
  roles: {
    'client' => Client.method(:run), 'server' => Server.method(:run),
    'ping' => Client.method(:run), 'pong' => Server.method(:run)
  },
  settings: { 'keep_alive' => String, 'tls' => Wattwire::BOOLEAN, 'server_workers' => Integer },
  capabilities: %w[encoding.bytes encoding.text encoding.record pacing.kit loop.open loop.closed
                   reply.echo reply.ack reply.literal literal async_client tls],
  bytes_max: { 'bytes' => 4_000_000, 'text' => 4_000_000, 'record' => 3_000_000 }
)
