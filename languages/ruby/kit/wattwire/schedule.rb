# frozen_string_literal: true

module Wattwire
  # When each message of a sender is due (C-10, C-11).
  class Schedule
    # Messages of the spec; all messages, with those beyond the count of a closed loop.
    attr_reader :scheduled, :total

    # The time after which no message is sent.
    attr_reader :last_ns

    def initialize(spec)
      @closed = spec.loop == 'closed'
      @phase_ns = @closed ? 0 : spec.phase_ns
      @step_ns = @closed ? 0 : spec.period_ns # each message of a closed loop is due at the start
      @window_ns = spec.duration_ns + spec.overrun_ns
      @scheduled = @closed ? spec.count : slots(spec)
      @total = @scheduled + spec.count_beyond
      start(Dialogue::NEVER_NS)
    end

    def start(start_ns)
      @first_ns = start_ns + @phase_ns
      @last_ns = @closed ? Dialogue::NEVER_NS : start_ns + @window_ns
    end

    def due_ns(index) = @first_ns + (index * @step_ns)

    private

    def slots(spec)
      period_ns = [spec.period_ns, 1].max
      [(spec.duration_ns - spec.phase_ns + period_ns - 1) / period_ns, 0].max
    end
  end
end
