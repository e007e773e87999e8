# frozen_string_literal: true

require 'json'
require 'web/client'

# The client: JSON-RPC 2.0.
class Client < Web::Client
  def initialize(kit)
    super
    @method = @record ? 'echo_record' : 'echo'
    @numbered = Array.new(kit.workers, 0) # ids are unique per connection only
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
    in { jsonrpc: '2.0', id: ^id, result: result }
      @record ? Wattwire::Record.checked(result) : result.to_s.b
    in { jsonrpc: '2.0', error: error } then raise Wattwire::SendFailed, "JSON-RPC error #{error}"
    else nil
    end
  rescue JSON::ParserError
    nil
  end
end
