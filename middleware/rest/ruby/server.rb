# frozen_string_literal: true

require 'rails'
require 'action_controller/railtie'
require 'puma'
require 'puma/server'
require 'puma/minissl'

# The server: a Rails application on puma.
class Server < Rails::Application
  THREADS = 5 # what the generator of Rails applications writes into config/puma.rb

  # What the generator writes for production, as far as this application has it.
  config.load_defaults 6.1
  config.cache_classes = true
  config.eager_load = true
  config.public_file_server.enabled = false
  config.api_only = true
  config.consider_all_requests_local = false
  config.secret_key_base = 'an application without sessions or cookies has no secret'
  config.log_level = :info
  config.log_tags = [:request_id]
  # That log is made and written, but must not fill a disk.
  config.logger = ActiveSupport::TaggedLogging.new(ActiveSupport::Logger.new(File::NULL))
  # Requests that Rails itself refuses, such as a body that is no JSON.
  config.exceptions_app = ->(env) { [CallsController.refused(env), {}, []] }

  def self.run(kit)
    CallsController.kit = kit
    initialize!
    routes.draw { post '/echo', to: 'calls#echo' }
    threads = kit.setting('server_workers').zero? ? THREADS : kit.setting('server_workers')
    puma = Puma::Server.new(self, Puma::Events.stdio, min_threads: threads, max_threads: threads)
    scheme, listener = listen(kit, puma)
    puma.run
    kit.listening("#{scheme}://127.0.0.1:#{listener.addr[1]}/echo")
    ready(kit, listener, threads)
    kit.drain
    puma.stop(true)
  end

  def self.listen(kit, puma)
    return 'http', puma.add_tcp_listener('127.0.0.1', 0) if kit.spec['tls.authority'].empty?

    context = Puma::MiniSSL::Context.new
    context.key, context.cert = kit.spec.values_at('tls.key', 'tls.certificate')
    context.verify_mode = Puma::MiniSSL::VERIFY_NONE # of clients
    ['https', puma.add_ssl_listener('127.0.0.1', 0, context)]
  end

  def self.ready(kit, listener, threads)
    nodelay = listener.getsockopt(:TCP, :NODELAY).bool # accepted connections inherit it
    tls = kit.spec['tls.authority'].empty? ? 'none' : 'offered'
    keep_alive = kit.setting('keep_alive') == 'off' ? 'off' : 'on' # as the client asks for
    kit.ready(
      matched: nil,
      effective: { http_version: '1.1', keep_alive: keep_alive, tcp_nodelay: nodelay, tls: tls,
                   server: "puma #{Puma::Const::PUMA_VERSION}", server_workers: threads,
                   transport: 'tcp/ipv4' },
      library: { name: 'Rails', version: Rails.version, build: RUBY_DESCRIPTION },
      guarantee: { delivery: 'at_most_once', ordering: 'none', overload: 'block' }
    )
  end
end

# The resource that answers calls.
class CallsController < ActionController::API
  class << self
    attr_accessor :kit

    # A request that never came to the controller; returns the status.
    def refused(env)
      status = env['PATH_INFO'][1..].to_i
      warn env['action_dispatch.exception'].full_message(highlight: false) if status >= 500
      unreadable = kit.spec['payload.encoding'] == 'record' ? Wattwire::Record::UNREADABLE : ''
      kit.serve(unreadable) if status == 400
      status
    end
  end

  def echo
    record = kit.spec['payload.encoding'] == 'record'
    found = record ? decoded : request.raw_post
    reply = kit.serve(found)
    if reply.nil?
      head found == Wattwire::Record::UNREADABLE ? :bad_request : :conflict
    elsif record
      render json: reply
    else
      render body: reply, content_type: request.content_type
    end
  end

  private

  def kit = self.class.kit

  # The record that Rails has read.
  def decoded = Wattwire::Record.checked(request.request_parameters.deep_symbolize_keys)
end
