# frozen_string_literal: true

require 'rails'
require 'action_controller/railtie'
require 'puma'
require 'puma/server'

# The server: a Rails application on puma.
class Server < Rails::Application
  THREADS = 5 # what the generator of Rails applications writes into config/puma.rb

  # What the generator writes for production, as far as this application has it.
  config.load_defaults 6.1
  config.eager_load = true
  config.api_only = true
  config.consider_all_requests_local = false
  config.secret_key_base = 'an application without sessions or cookies has no secret'
  config.logger = Logger.new($stderr, level: Logger::INFO)
  # Requests that Rails itself refuses, such as a body that is no JSON.
  config.exceptions_app = ->(env) { [CallsController.refused(env['PATH_INFO'][1..].to_i), {}, []] }

  def self.run(kit)
    CallsController.kit = kit
    initialize!
    routes.draw { post '/echo', to: 'calls#echo' }
    threads = kit.setting('server_workers').zero? ? THREADS : kit.setting('server_workers')
    puma = Puma::Server.new(self, Puma::Events.stdio, min_threads: threads, max_threads: threads)
    listener = puma.add_tcp_listener('127.0.0.1', 0)
    puma.run
    kit.listening("http://127.0.0.1:#{listener.addr[1]}/echo")
    ready(kit, listener, threads)
    kit.drain
    puma.stop(true)
  end

  def self.ready(kit, listener, threads)
    nodelay = listener.getsockopt(:TCP, :NODELAY).bool # accepted connections inherit it
    kit.ready(
      matched: nil,
      effective: { http_version: '1.1', keep_alive: 'on', tcp_nodelay: nodelay, tls: 'none',
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
    def refused(status)
      kit.serve(Wattwire::Record::UNREADABLE) if status == 400
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
