# frozen_string_literal: true

module Wattwire
  # Exit codes (C-02 to C-04, C-09).
  BAD_SPEC = 2
  UNSUPPORTED = 3
  MIDDLEWARE_FAILED = 4
  END_OF_INPUT = 5

  # A message that was not sent, or a call that failed (C-36). The run continues.
  class SendFailed < StandardError; end

  # An error that ends the node with an exit code and an ERROR line, which names the key if any.
  class Refused < StandardError
    attr_reader :exit_code, :key

    def initialize(exit_code, key, reason)
      super(reason)
      @exit_code = exit_code
      @key = key
    end
  end
end
