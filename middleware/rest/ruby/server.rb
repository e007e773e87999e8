# frozen_string_literal: true

require 'web/server'

# The server: a Rails application whose only resource answers calls.
module Server
  def self.run(kit)
    CallsController.kit = kit
    CallsController.record = kit.spec.payload_encoding == 'record'
    Web.serve(kit, '/echo', 'calls#echo') { |env| [CallsController.refused(env), {}, []] }
  end
end

# The resource that answers calls.
class CallsController < ActionController::API
  class << self
    attr_accessor :kit, :record

    # Counts a request that did not reach the controller; returns its status.
    def refused(env)
      status = env['PATH_INFO'][1..].to_i
      warn env['action_dispatch.exception'].full_message(highlight: false) if status >= 500
      kit.serve(record ? Wattwire::Record::UNREADABLE : '') if status == 400
      status
    end
  end

  def echo
    record = self.class.record
    arrival = record ? decoded : request.raw_post
    reply = kit.serve(arrival)
    if reply.nil?
      head arrival == Wattwire::Record::UNREADABLE ? :bad_request : :conflict
    elsif record
      render json: reply
    else
      render body: reply, content_type: request.content_type
    end
  end

  private

  def kit = self.class.kit

  # Returns the record that Rails has parsed.
  def decoded = Wattwire::Record.checked(request.request_parameters.deep_symbolize_keys)
end
