# frozen_string_literal: true

require 'json'
require 'web/client'

# The client: JSON-RPC 2.0.
class Client < Web::Client
  def initialize(kit)
    super
    @method = @record ? 'echo_record' : 'echo'
    @numbered = Array.new(kit.workers, 0) # a response belongs to its connection: ids repeat there
  end

  private

  def type = 'application/json'

  def body(message, worker)
    message = message.dup.force_encoding(Encoding::UTF_8) unless @record
    id = @numbered[worker] += 1
    JSON.generate(jsonrpc: '2.0', id: id, method: @method, params: [message])
  end

  def reply(text, worker)
    id = @numbered[worker]
    case JSON.parse(text, symbolize_names: true)
    in { jsonrpc: '2.0', id: ^id, result: found }
      @record ? Wattwire::Record.checked(found) : found.to_s.b
    in { jsonrpc: '2.0', error: found } then raise Wattwire::SendFailed, "JSON-RPC error #{found}"
    else nil
    end
  rescue JSON::ParserError
    nil
  end
end
