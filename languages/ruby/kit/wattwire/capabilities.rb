# frozen_string_literal: true

module Wattwire
  # The capabilities of a cell, and the check of a spec against them (C-03).
  class Capabilities
    BYTES_MIN = { 'bytes' => 16, 'text' => 32, 'record' => 96 }.freeze
    BYTES_MAX = 2**26

    def initialize(roles, names, offers, bytes_max)
      @names = names + roles.map { |role| "role.#{role}" }
      @offers = offers
      @bytes_max = bytes_max
    end

    # Refuses a run that needs more than the cell has.
    def check(spec)
      missing = needed(spec) - @names + missing_lengths(spec) + missing_settings(spec)
      return if missing.empty?

      raise Refused.new(UNSUPPORTED, nil, "not in this cell: #{missing.join(', ')}")
    end

    private

    def needed(spec)
      names = ["role.#{spec.role}", "pacing.#{spec.pacing}", "loop.#{spec.loop}",
               "encoding.#{spec.payload_encoding}"]
      names << "reply.#{spec.reply}" unless spec.pattern == 'topic'
      names << 'literal' unless spec.payload_literal.empty?
      names << 'async_client' if overlapping?(spec)
      names
    end

    def overlapping?(spec)
      caller = spec.role == 'client' || spec.role == 'ping'
      caller && spec.loop == 'open' && spec.outstanding_max > 1
    end

    def missing_lengths(spec)
      longest = @bytes_max.fetch(spec.payload_encoding, BYTES_MAX)
      allowed = BYTES_MIN[spec.payload_encoding]..longest
      return [] if allowed.cover?(spec.payload_bytes) || !spec.payload_literal.empty?

      ["payload.bytes #{spec.payload_bytes}, only #{allowed}"]
    end

    def missing_settings(spec)
      @offers.reject { |name, values| values.include?(spec.settings[name]) }.keys
    end
  end
end
