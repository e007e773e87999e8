# frozen_string_literal: true

# gRPC node: unary calls with the stubs generated from ../idl/wattwire.proto.
require 'wattwire'
require_relative 'client'
require_relative 'server'

Wattwire.run(
  'client' => Client.method(:run), 'server' => Server.method(:run),
  'ping' => Client.method(:run), 'pong' => Server.method(:run)
)
