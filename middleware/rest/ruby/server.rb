# frozen_string_literal: true

require 'web/server'

# The server: a Rails application whose only resource answers calls.
module Server
  def self.run(kit)
    CallsController.kit = kit
    Web.serve(kit, '/echo', 'calls#echo') { |env| [CallsController.refused(env), {}, []] }
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
