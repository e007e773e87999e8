# frozen_string_literal: true

# REST node: Rails on puma, and Net::HTTP.
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
Wattwire.run('client' => client, 'server' => server, 'ping' => client, 'pong' => server)
