# frozen_string_literal: true

# RPC node: JSON-RPC 2.0 over Rails on puma, and Net::HTTP.
require 'wattwire'

# Each role loads its own module, so a client does not load Rails.
def role(name)
  lambda do |kit|
    require_relative name
    Object.const_get(name.capitalize).run(kit)
  end
end

client = role('client')
server = role('server')
Wattwire.run(
  roles: { 'client' => client, 'server' => server, 'ping' => client, 'pong' => server },
  settings: {
    'keep_alive' => String, 'tcp_nodelay' => String, 'tls' => Wattwire::BOOLEAN,
    'server_workers' => Integer
  },
  capabilities: %w[encoding.text encoding.record pacing.kit loop.open loop.closed
                   reply.echo reply.ack reply.literal literal async_client tls],
  offers: { 'tcp_nodelay' => %w[default on] },
  bytes_max: { 'text' => 16_777_216, 'record' => 4_194_304 }
)
