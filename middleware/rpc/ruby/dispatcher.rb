# frozen_string_literal: true

# JSON-RPC 2.0 (https://www.jsonrpc.org/specification) without batches: finds the procedure by its
# name, passes its parameters, and wraps its result or its error.
class Dispatcher
  # Raised by a procedure to return an error object to the caller.
  class Refusal < StandardError
    attr_reader :code

    def initialize(code, reason)
      super(reason)
      @code = code
    end
  end

  PARSE_ERROR = -32_700
  INVALID_REQUEST = -32_600
  UNKNOWN_METHOD = -32_601
  INVALID_PARAMS = -32_602
  INTERNAL_ERROR = -32_603

  def self.error(id, code, reason)
    { jsonrpc: '2.0', id: id, error: { code: code, message: reason } }
  end

  # `procedures`: name => callable that takes the parameters.
  def initialize(procedures)
    @procedures = procedures
  end

  # Returns the response to a request parsed with symbols as keys; nil for a notification.
  def answer(request)
    id = request[:id]
    well_formed = (request in { jsonrpc: '2.0', method: String => name })
    return Dispatcher.error(id, INVALID_REQUEST, 'no request object') unless well_formed

    response = { jsonrpc: '2.0', id: id, result: call(name, request[:params]) }
    response if request.key?(:id)
  rescue Refusal => error
    Dispatcher.error(id, error.code, error.message)
  rescue StandardError => error
    warn error.full_message(highlight: false)
    Dispatcher.error(id, INTERNAL_ERROR, error.class.name)
  end

  private

  def call(name, params)
    procedure = @procedures[name]
    raise Refusal.new(UNKNOWN_METHOD, "no method #{name}") unless procedure

    list = params.is_a?(Array) && params.size == procedure.arity
    raise Refusal.new(INVALID_PARAMS, "params: a list of #{procedure.arity}") unless list

    procedure.call(*params)
  end
end
