# frozen_string_literal: true

module Wattwire
  # The check of a spec against what it declares (C-03).
  class Declaration
    # `roles`: those that have a callable.
    def initialize(spec, roles)
      @spec = spec
      declared = (roles & spec.declared_roles).map { |role| "role.#{role}" }
      @names = spec.declared_capabilities + declared
    end

    # Refuses a run that needs more than the spec declares.
    def check
      missing = needed - @names + missing_size + missing_settings
      return if missing.empty?

      raise Refused.new(UNSUPPORTED, nil, "not in this cell: #{missing.join(', ')}")
    end

    private

    def needed
      names = ["role.#{@spec.role}", "pacing.#{@spec.pacing}", "loop.#{@spec.loop}",
               "encoding.#{@spec.payload_encoding}"]
      names << "reply.#{@spec.reply}" unless @spec.pattern == 'topic'
      names << 'literal' unless @spec.payload_literal.empty?
      names << 'async_client' if overlapping?
      names
    end

    def overlapping?
      caller = @spec.role == 'client' || @spec.role == 'ping'
      caller && @spec.loop == 'open' && @spec.outstanding_max > 1
    end

    def missing_size
      return [] if sizes.cover?(@spec.payload_bytes)

      ["payload.bytes #{@spec.payload_bytes}, only #{sizes}"]
    end

    # Returns the declared range of payload.bytes for the encoding of the spec.
    def sizes
      return 0..@spec.declared_record_bytes_max if @spec.payload_encoding == 'record'

      unit = @spec.payload_encoding == 'text' ? 2 : 1
      least = @spec.payload_literal.empty? ? unit * @spec.declared_payload_bytes_min : 0
      least..@spec.declared_payload_bytes_max
    end

    def missing_settings
      unsupported = @spec.allowed.reject { |name, allowed| allowed.include?(@spec.settings[name]) }
      unsupported.map { |name, allowed| "#{name} = #{@spec.settings[name]}, only #{allowed}" }
    end
  end
end
