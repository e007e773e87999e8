# frozen_string_literal: true

require 'rails'
require 'action_controller/railtie'
require 'puma'
require 'puma/server'
require 'puma/minissl'

# The common code of servers over HTTP: a Rails application with one route, on puma.
module Web
  THREADS = 5 # as in the config/puma.rb that Rails' generator writes

  # The settings that Rails' generator writes for production and this application can use.
  class Application < Rails::Application
    config.load_defaults 6.1
    config.cache_classes = true
    config.eager_load = true
    config.public_file_server.enabled = false
    config.api_only = true
    config.consider_all_requests_local = false
    config.secret_key_base = 'an application without sessions or cookies has no secret'
    config.log_level = :info
    config.log_tags = [:request_id]
    # The log is formatted and written, but must not fill a disk.
    config.logger = ActiveSupport::TaggedLogging.new(ActiveSupport::Logger.new(File::NULL))
  end

  # Runs a server or pong. `action` ("calls#echo") answers POSTs to `path`. The block returns the
  # response [status, headers, body] to a request that Rails itself refused, such as invalid JSON.
  def self.serve(kit, path, action, &refused)
    Application.config.exceptions_app = refused
    Application.initialize!
    Application.routes.draw { post path, to: action }
    threads = kit.setting('server_workers').zero? ? THREADS : kit.setting('server_workers')
    puma = Puma::Server.new(
      Application, Puma::Events.stdio, min_threads: threads, max_threads: threads
    )
    scheme, listener = listen(kit, puma)
    puma.run
    kit.listening("#{scheme}://#{kit.spec.host_address}:#{listener.addr[1]}#{path}")
    ready(kit, listener, threads)
    kit.drain
    puma.stop(true)
  end

  def self.listen(kit, puma)
    host = kit.spec.host_address
    return 'http', puma.add_tcp_listener(host, 0) if kit.spec.tls_authority.empty?

    context = Puma::MiniSSL::Context.new
    context.key = kit.spec.tls_key
    context.cert = kit.spec.tls_certificate
    context.verify_mode = Puma::MiniSSL::VERIFY_NONE # of clients
    ['https', puma.add_ssl_listener(host, 0, context)]
  end

  def self.ready(kit, listener, threads)
    nodelay = listener.getsockopt(:TCP, :NODELAY).bool # accepted connections inherit it
    tls = kit.spec.tls_authority.empty? ? 'none' : 'offered'
    keep_alive = kit.setting('keep_alive') == 'off' ? 'off' : 'on' # as the client asks for
    kit.ready(
      matched: nil,
      effective: { http_version: '1.1', keep_alive: keep_alive, tcp_nodelay: nodelay, tls: tls,
                   server: "puma #{Puma::Const::PUMA_VERSION}", server_workers: threads,
                   transport: 'tcp/ipv4' },
      library: { name: 'Rails', version: Rails.version, build: RUBY_DESCRIPTION },
      guarantee: { delivery: 'reliable', ordering: 'none', overload: 'block' }
    )
  end
  private_class_method :listen, :ready
end
