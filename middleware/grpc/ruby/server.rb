# frozen_string_literal: true

require 'grpc'
require_relative 'messages'
require 'wattwire_services_pb'

# The server, at the library's defaults: a pool of threads, which refuses a call if none is free.
module Server
  # The service's methods; a run calls the method of its encoding.
  class Calls < Wattwire::Calls::Service
    def initialize(kit)
      super()
      @kit = kit
      @shape = Messages.shape(kit.spec)
    end

    def bytes(request, _call) = answer(request)

    def text(request, _call) = answer(request)

    def record(request, _call) = answer(request)

    private

    def answer(request)
      reply = @kit.serve(@shape.from_wire.call(request))
      raise GRPC::FailedPrecondition, 'of another run' unless reply

      @shape.to_wire.call(reply)
    end
  end

  def self.run(kit)
    workers = kit.setting('server_workers')
    workers = GRPC::RpcServer::DEFAULT_POOL_SIZE if workers.zero?
    server = GRPC::RpcServer.new(pool_size: workers)
    host = kit.spec.host_address
    port = server.add_http2_port("#{host}:0", credentials(kit))
    raise "cannot listen on #{host}" if port.zero?

    server.handle(Calls.new(kit))
    Thread.new { server.run }
    raise 'the server did not start' unless server.wait_till_running(10)

    kit.listening("#{host}:#{port}")
    ready(kit, workers)
    kit.drain
    server.stop
  end

  def self.credentials(kit)
    return :this_port_is_insecure if kit.spec.tls_authority.empty?

    key, certificate = [kit.spec.tls_key, kit.spec.tls_certificate].map { File.read(_1) }
    pair = { private_key: key, cert_chain: certificate }
    GRPC::Core::ServerCredentials.new(nil, [pair], false)
  end

  def self.ready(kit, workers)
    tls = kit.spec.tls_authority.empty? ? 'none' : 'offered'
    kit.ready(
      matched: nil,
      effective: { keep_alive: 'on', tls: tls, server_workers: workers, transport: 'tcp/ipv4',
                   max_connections_waiting: GRPC::RpcServer::DEFAULT_MAX_WAITING_REQUESTS },
      library: { name: 'grpc', version: GRPC::VERSION, build: RUBY_DESCRIPTION },
      guarantee: { delivery: 'reliable', ordering: 'none', overload: 'drop_newest' }
    )
  end
end
