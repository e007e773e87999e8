# frozen_string_literal: true

require 'rails'
require 'action_controller/railtie'
require 'puma'
require 'puma/server'
require 'puma/minissl'
require_relative 'dispatcher'

# The server: a Rails application on puma, whose only action hands requests to the dispatcher.
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
  config.exceptions_app = ->(env) { CallsController.refused(env) }

  def self.run(kit)
    CallsController.kit = kit
    CallsController.dispatcher = Dispatcher.new(Procedures.new(kit).by_name)
    initialize!
    routes.draw { post '/rpc', to: 'calls#call' }
    threads = kit.setting('server_workers').zero? ? THREADS : kit.setting('server_workers')
    puma = Puma::Server.new(self, Puma::Events.stdio, min_threads: threads, max_threads: threads)
    scheme, listener = listen(kit, puma)
    puma.run
    kit.listening("#{scheme}://127.0.0.1:#{listener.addr[1]}/rpc")
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
      effective: { keep_alive: keep_alive, tcp_nodelay: nodelay, tls: tls,
                   server: "puma #{Puma::Const::PUMA_VERSION}", server_workers: threads,
                   transport: 'tcp/ipv4' },
      library: { name: 'Rails', version: Rails.version, build: RUBY_DESCRIPTION },
      guarantee: { delivery: 'at_most_once', ordering: 'none', overload: 'block' }
    )
  end
end

# What can be called: the procedure of the run's encoding.
class Procedures
  FOREIGN = -32_000

  def initialize(kit)
    @kit = kit
  end

  def by_name
    return { 'echo_record' => method(:echo_record) } if @kit.spec['payload.encoding'] == 'record'

    { 'echo' => method(:echo) }
  end

  def echo(text)
    refuse('params: a text', '') unless text.is_a?(String)
    reply_to(text.b).dup.force_encoding(Encoding::UTF_8)
  end

  def echo_record(record)
    record = Wattwire::Record.checked(record)
    refuse('params: a record', record) if record == Wattwire::Record::UNREADABLE
    reply_to(record)
  end

  private

  def refuse(reason, unreadable)
    @kit.serve(unreadable)
    raise Dispatcher::Refusal.new(Dispatcher::INVALID_PARAMS, reason)
  end

  def reply_to(request)
    @kit.serve(request) || raise(Dispatcher::Refusal.new(FOREIGN, 'of another run'))
  end
end

# The action behind the address.
class CallsController < ActionController::API
  class << self
    attr_accessor :kit, :dispatcher

    # The response to a request that never came to the action: [status, headers, body].
    def refused(env)
      status = env['PATH_INFO'][1..].to_i
      warn env['action_dispatch.exception'].full_message(highlight: false) if status >= 500
      return [status, {}, []] unless status == 400

      [200, { 'Content-Type' => 'application/json' }, [JSON.generate(unparsed)]]
    end

    def unparsed
      kit.serve(kit.spec['payload.encoding'] == 'record' ? Wattwire::Record::UNREADABLE : '')
      Dispatcher.error(nil, Dispatcher::PARSE_ERROR, 'no JSON')
    end
  end

  def call
    return render(json: self.class.unparsed) if request.raw_post.empty?

    answer = self.class.dispatcher.answer(request.request_parameters.deep_symbolize_keys)
    answer ? render(json: answer) : head(:no_content)
  end
end
