# frozen_string_literal: true

module Wattwire
  # The window of a client, ping or publisher: it sends, checks and records messages.
  class Sender
    NOT_SENT = [SendFailed, SystemCallError, IOError].freeze

    # Threads that send; the counts of DONE.
    attr_reader :workers, :sent, :received, :corrupt

    def initialize(spec, peer, messages, samples, dialogue)
      @messages = messages
      @samples = samples
      @dialogue = dialogue
      @schedule = Schedule.new(spec)
      @closed = spec.loop == 'closed'
      @topic = spec.pattern == 'topic'
      @workers = @closed || @topic ? 1 : spec.outstanding_max
      @buffers = Array.new(@workers) { messages.message }
      @node = spec.node
      @peer = peer
      @kind = @topic ? KIND_MESSAGE : KIND_CALL
      @spin_ns = spec.spin_ns
      @warmup_ns = spec.warmup_ns
      @timeout_ns = spec.timeout_ns
      @timeout_s = spec.timeout_ns / 1e9
      @lock = Mutex.new
      @next = @sent = @received = @corrupt = 0
    end

    # Yields (message, timeout_s, worker) for each message from GO to STOP, in `workers` threads.
    def run(&send)
      @dialogue.await_go
      @schedule.start(@dialogue.start_ns)
      @warm_until_ns = @dialogue.start_ns + @warmup_ns
      others = Array.new(@workers - 1) { |index| Thread.new { work(index + 1, &send) } }
      tallies, first_ns, last_ns = [work(0, &send), *others.map(&:value)].transpose
      count(tallies.transpose.map(&:sum))
      @dialogue.line('SENT', { begin_ns: first_ns.compact.min, end_ns: last_ns.compact.max,
                               sent: @sent, scheduled: @schedule.scheduled, skipped: 0 })
      @dialogue.await_stop
    end

    private

    # `tally`: the number of messages for each value of the flags FAILED, TIMEOUT and CORRUPT.
    def count(tally)
      @sent = tally.sum - (@topic ? tally[FAILED] : 0)
      return if @topic

      @received = tally[OK] + tally[CORRUPT]
      @corrupt = tally[CORRUPT]
    end

    # One worker: takes the next message, waits until it is due, sends and records it (C-10, C-33).
    def work(worker, &send)
      message = @buffers[worker]
      bytes = @messages.size(message)
      schedule = @schedule
      tally = Array.new(CORRUPT + 1, 0)
      while (index = @lock.synchronize { (@next += 1) - 1 }) < schedule.total
        due_ns = schedule.due_ns(index)
        break unless @dialogue.wait_until(due_ns, @spin_ns)

        @dialogue.line('COUNTED', {}) if index == schedule.scheduled
        break unless (begin_ns = Wattwire.now) <= schedule.last_ns

        seq = (@node << 48) | index
        @messages.stamp(message, seq, begin_ns)
        first_ns ||= begin_ns
        end_ns, flags = send_one(message, seq, begin_ns, worker, &send)
        tally[flags] += 1
        intended_ns = @closed ? begin_ns : due_ns
        flags |= WARM_UP if intended_ns < @warm_until_ns
        @samples.add(seq, intended_ns, begin_ns, end_ns, bytes, @peer, @kind, flags)
      end
      [tally, first_ns, end_ns == UNKNOWN_NS ? Wattwire.now : end_ns]
    end

    # Sends a message and checks its reply (C-23); returns its end and flags.
    def send_one(message, seq, begin_ns, worker)
      reply = yield message, @timeout_s, worker
      end_ns = Wattwire.now
      return [end_ns, OK] if @topic
      return [UNKNOWN_NS, TIMEOUT] if reply.nil? || end_ns - begin_ns > @timeout_ns

      [end_ns, @messages.answers?(reply, message, seq) ? OK : CORRUPT]
    rescue *NOT_SENT
      [@topic ? Wattwire.now : UNKNOWN_NS, FAILED]
    end
  end
end
