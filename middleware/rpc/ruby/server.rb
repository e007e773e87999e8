# frozen_string_literal: true

require 'web/server'
require_relative 'dispatcher'

# The server: a Rails application whose only action hands requests to the dispatcher.
module Server
  def self.run(kit)
    CallsController.kit = kit
    CallsController.dispatcher = Dispatcher.new(Procedures.new(kit).by_name)
    Web.serve(kit, '/rpc', 'calls#call') { |env| CallsController.refused(env) }
  end
end

# The procedures that clients can call: that of the run's encoding.
class Procedures
  FOREIGN = -32_000

  def initialize(kit)
    @kit = kit
  end

  def by_name
    return { 'echo_record' => method(:echo_record) } if @kit.spec.payload_encoding == 'record'

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

# The controller of the only route.
class CallsController < ActionController::API
  class << self
    attr_accessor :kit, :dispatcher

    # Returns the response [status, headers, body] to a request that did not reach the action.
    def refused(env)
      status = env['PATH_INFO'][1..].to_i
      warn env['action_dispatch.exception'].full_message(highlight: false) if status >= 500
      return [status, {}, []] unless status == 400

      [200, { 'Content-Type' => 'application/json' }, [JSON.generate(unparsed)]]
    end

    def unparsed
      kit.serve(kit.spec.payload_encoding == 'record' ? Wattwire::Record::UNREADABLE : '')
      Dispatcher.error(nil, Dispatcher::PARSE_ERROR, 'no JSON')
    end
  end

  def call
    return render(json: self.class.unparsed) if request.raw_post.empty?

    answer = self.class.dispatcher.answer(request.request_parameters.deep_symbolize_keys)
    answer ? render(json: answer) : head(:no_content)
  end
end
