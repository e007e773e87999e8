# frozen_string_literal: true

# Making, checking and answering messages. Payload, Literal and Record have the same methods:
#   message                         a message of its own, to be stamped again and again
#   size(message)                   its length in bytes
#   stamp(message, seq, send_ns)    writes the sequence and the send time
#   check(message)                  [verdict, sequence or nil, send time in ns] of an arrival (C-21)
#   reply(request)                  the reply to a request (C-23)
#   answers?(arrival, message, seq) whether the arrival is the correct reply (C-23)
module Wattwire
  # Verdicts of an arrival; the third is CORRUPT, the record's flag.
  OK = 0
  FOREIGN = -1
  UNREADABLE = [CORRUPT, nil, UNKNOWN_NS].freeze

  # Returns the messages of a spec; `nodes` are the numbers of the nodes whose sequences are valid.
  def self.messages_of(spec, nodes)
    return Literal.new(spec) unless spec.payload_literal.empty?

    (spec.payload_encoding == 'record' ? Record : Payload).new(spec, nodes)
  end
end

require_relative 'fill'
require_relative 'payload'
require_relative 'record'
