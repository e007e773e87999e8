# frozen_string_literal: true

module Wattwire
  # The dialogue with the harness: lines on descriptor 3, GO and STOP from standard input
  # (C-05, C-08, C-09).
  class Dialogue
    LINES_DESCRIPTOR = 3
    NEVER_NS = (2**62) - 1

    # NEVER_NS before GO; nil before STOP.
    attr_reader :start_ns, :stop_ns

    def initialize
      @start_ns = NEVER_NS
      @stop_ns = nil
      @out = IO.for_fd(LINES_DESCRIPTOR, 'w')
      @out.close_on_exec = true
      @lock = Mutex.new
      @changed = ConditionVariable.new
      trap('TERM', 'SYSTEM_DEFAULT') # ends a process that is blocked in native code, too
    end

    def line(keyword, fields) = @out.syswrite("#{keyword} #{JSON.generate(fields)}\n")

    # Prints ERROR and ends the process at once, whatever the middleware is doing.
    def fail(code, key, reason)
      line('ERROR', { code: code, key: key, reason: reason.scrub })
    ensure
      exit!(code)
    end

    def listen
      Thread.new do
        $stdin.each_line(chomp: true) { |text| obey(text) }
        exit!(END_OF_INPUT)
      end
    end

    def await_go = @lock.synchronize { @changed.wait(@lock) until go? || @stop_ns }
    def await_stop = @lock.synchronize { @changed.wait(@lock) until @stop_ns }

    # Waits until `due_ns` and spins for the last `spin_ns`. Returns false if STOP came first.
    def wait_until(due_ns, spin_ns)
      while @stop_ns.nil? && (left_ns = due_ns - Wattwire.now).positive?
        next Thread.pass if left_ns <= spin_ns # other threads may have a reply to read

        @lock.synchronize { @changed.wait(@lock, (left_ns - spin_ns) / 1e9) unless @stop_ns }
      end
      @stop_ns.nil?
    end

    private

    def go? = @start_ns != NEVER_NS

    def obey(text)
      start_ns = text[/\AGO (\d+)\z/, 1]&.to_i
      valid = start_ns ? start_ns > Wattwire.now : text == 'STOP'
      fail(BAD_SPEC, 'GO', "found #{text}; allowed: GO <start in the future>, STOP") unless valid

      if start_ns
        @start_ns = start_ns unless go?
      else
        @stop_ns ||= Wattwire.now
      end
      @lock.synchronize { @changed.broadcast }
    end
  end
end
