# frozen_string_literal: true

require 'json'
require 'web/client'

# The client: a request's body is the payload.
class Client < Web::Client
  TYPES = { 'bytes' => 'application/octet-stream', 'text' => 'text/plain; charset=utf-8',
            'record' => 'application/json' }.freeze

  private

  def type
    @type ||= TYPES[@kit.spec.payload_literal.empty? ? @kit.spec.payload_encoding : 'text']
  end

  def body(message, _worker) = @record ? JSON.generate(message) : message

  def reply(text, _worker)
    @record ? Wattwire::Record.checked(JSON.parse(text, symbolize_names: true)) : text
  rescue JSON::ParserError
    nil
  end
end
