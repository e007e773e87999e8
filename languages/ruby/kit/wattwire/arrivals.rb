# frozen_string_literal: true

module Wattwire
  # The part of the kit that subscribers, servers and pongs call for each arrival.
  module Arrivals
    # Records that a subscriber's callback was entered with this message.
    def received(message)
      end_ns = Wattwire.now
      seq, send_ns, verdict = arrive(message, end_ns)
      record(seq, send_ns, end_ns, message, verdict) if seq
    end

    # Counts a request. Yields the reply, which the block hands over, and returns it. Without a
    # block the caller's next statement hands it over. Returns nil for a request that is foreign or
    # unreadable, which has no reply.
    def serve(request)
      begin_ns = Wattwire.now
      seq, _, verdict = arrive(request, begin_ns)
      return if verdict == FOREIGN || request == Record::UNREADABLE

      reply = @messages.reply(request)
      yield reply if block_given?
      record(seq, begin_ns, Wattwire.now, request, verdict) if seq
      reply
    end

    # Blocks until a receiver may end (C-15).
    def drain
      @dialogue.await_stop
      stop_ns = @dialogue.stop_ns
      linger_ns = stop_ns + (1_000_000 * @spec.linger_ms)
      quiet_ns = 1_000_000 * @spec.quiet_ms
      sleep(0.01) until now > [[@arrival_ns, stop_ns].max + quiet_ns, linger_ns].min
    end

    private

    # Returns [sequence, send time in ns, verdict]; without a sequence there is nothing to record.
    def arrive(message, now_ns)
      verdict, seq, send_ns = @messages.check(message)
      probe = @literal ? now_ns < @dialogue.start_ns : seq && seq & PROBE_COUNTER == PROBE_COUNTER
      @lock.synchronize do
        if verdict == FOREIGN
          @foreign += 1
        elsif probe
          @probes += 1
        else
          seq = (@peer << 48) | @received if @literal # a literal's arrivals are numbered (C-22)
          @received += 1 if seq
          @corrupt += 1 if verdict == CORRUPT
          @arrival_ns = now_ns
        end
      end
      [verdict == FOREIGN || probe ? nil : seq, send_ns, verdict]
    end

    # An arrival has no intended time, so its end decides whether it belongs to the warm-up (C-13).
    def record(seq, begin_ns, end_ns, message, verdict)
      flags = end_ns < @dialogue.start_ns + @warmup_ns ? verdict | WARM_UP : verdict
      @samples.add(seq, UNKNOWN_NS, begin_ns, end_ns, @messages.size(message), seq >> 48, @kind,
                   flags)
    end
  end
end
