# frozen_string_literal: true

module Wattwire
  class SendFailed < StandardError; end # the middleware did not take a message; the run goes on

  # Records in memory during the window, a file after it (C-24 to C-26).
  class Recorder
    def initialize(capacity)
      @capacity, @count, @lock = capacity, 0, Mutex.new
      @data = "\0".b * (40 * capacity)
    end

    # The eight fields of C-25.
    def add(*fields)
      record = fields.pack('Q<q<q<q<L<S<CC')
      @lock.synchronize do
        @data[40 * @count, 40] = record if @count < @capacity
        @count += 1
      end
    end

    # Returns how many records are in the file, and how many found no room.
    def write(path, role, node, seed)
      counts = [[@count, @capacity].min, [@count - @capacity, 0].max]
      head = ['WATTWIRE', 1, 64, 40, role, 1, node, 0, 0, *counts, seed, '']
      head = head.pack('a8S<S<S<CCS<S<L<Q<Q<Q<a16')
      File.binwrite(path, head + @data.byteslice(0, 40 * counts[0]))
      counts
    end
  end

  # What a role works with; safe in several threads.
  class Kit
    ROLES = %w[publisher subscriber server client action_server action_client ping pong].freeze
    WARM_UP, FAILED, TIMEOUT = 1, 2, 4
    NOT_SENT = [SendFailed, SystemCallError, IOError].freeze
    attr_reader :spec, :workers

    def initialize(spec, lines)
      @spec, @lines, @lock = spec, lines, Mutex.new
      sender = %w[publisher client ping].include?(spec['role'])
      nodes = sender ? [spec['node']] : spec['peers.nodes'] # a sender's arrivals are its own echoes
      @shape = (spec['payload.encoding'] == 'record' ? Record : Payload).new(spec, nodes)
      @closed, @topic = spec['loop'] == 'closed', spec['pattern'] == 'topic'
      @workers = @closed || @topic ? 1 : spec['outstanding_max']
      @messages = sender ? Array.new(@workers) { @shape.message } : []
      @peer = spec['peers.nodes'].size == 1 ? spec['peers.nodes'][0] : 65_535
      @recorder = Recorder.new(spec['record.capacity'])
      @next = @arrival_ns = 0
      left_ns, period_ns = spec['duration_ns'] - spec['phase_ns'], [spec['period_ns'], 1].max
      scheduled = @closed ? spec['count'] : [(left_ns + period_ns - 1) / period_ns, 0].max
      @sent = { begin_ns: nil, end_ns: nil, sent: 0, scheduled: scheduled, skipped: 0 }
      @done = { sent: 0, received: 0, recorded: 0, overflow: 0, foreign: 0, corrupt: 0, probes: 0 }
    end

    def now = Wattwire.now
    def setting(name) = @spec.fetch("settings.#{name}")
    def listening(*endpoints) = @lines.line('LISTENING', { endpoints: endpoints })

    # Asks the block until it is true, for ready_timeout_ms at most; returns the ns it took.
    def await(what)
      begin_ns = now
      until yield
        late = now - START_NS > @spec['ready_timeout_ms'] * 1_000_000
        raise "no #{what} within ready_timeout_ms; is it running?" if late
        sleep(0.002)
      end
      now - begin_ns
    end

    def await_peers = await("#{@spec['peers.count']} peers") { yield >= @spec['peers.count'] }

    # Calls as `calls` does until a reply comes (C-07); returns the ns it took.
    def probe
      await('reply to a probe') do
        @done[:probes] += 1
        @shape.stamp(@messages[0], @spec['node'] << 48 | PROBE, now)
        yield @messages[0], 0.25, 0
      rescue *NOT_SENT
        nil
      end
    end

    # The fields of READY beside startup_ns.
    def ready(fields)
      @lines.line('READY', { discovery_ns: nil, startup_ns: now - START_NS, **fields })
    end

    # Yields (message, timeout_s, worker) for each message that is due, in `workers` threads where
    # that is above 1. The block returns the reply, nil at the timeout, or raises SendFailed; a
    # publisher's returns anything when the message was taken.
    def calls(&send)
      @lines.await_go
      if @workers == 1
        work(0, &send)
      else
        Array.new(@workers) { |worker| Thread.new { work(worker, &send) } }.each(&:join)
      end
      @lines.line('SENT', @sent)
      @lines.await_stop
    end
    alias publish calls

    # A subscriber's callback was entered with this message.
    def received(message)
      end_ns = now
      seq, send_ns, flags = arrive(message, end_ns)
      record(seq, UNKNOWN_NS, send_ns, end_ns, message, flags) if seq
    end

    # Yields the reply, to be handed over in the block, and returns it. Without a block the caller's
    # next statement hands it over. nil: the request is foreign or unreadable, and gets none.
    def serve(request)
      begin_ns = now
      seq, _, flags = arrive(request, begin_ns)
      return if flags == FOREIGN || request == Record::UNREADABLE
      reply = @shape.reply(request)
      yield reply if block_given?
      record(seq, UNKNOWN_NS, begin_ns, now, request, flags) if seq
      reply
    end

    # Blocks until a receiver may end (C-15).
    def drain
      @lines.await_stop
      left_ns = 1
      while left_ns.positive?
        sleep(left_ns / 1e9)
        quiet_ns = [@lines.stop_ns, @arrival_ns].max + @spec['quiet_ms'] * 1_000_000
        left_ns = [quiet_ns, @lines.stop_ns + @spec['linger_ms'] * 1_000_000].min - now
      end
    end

    # Writes the samples and prints DONE.
    def finish(out)
      path, role = File.join(out, 'samples.bin'), ROLES.index(@spec['role'])
      recorded, overflow = @recorder.write(path, role, @spec['node'], @spec['payload.seed'])
      @done.update(sent: @sent[:sent], recorded: recorded, overflow: overflow)
      @lines.line('DONE', @done)
    end

    private

    def start_ns = @lines.start_ns || 2**63

    # One worker: whoever is free takes the next message and waits until it is due (C-10, C-33).
    def work(worker, &send)
      message = @messages[worker]
      phase_ns, period_ns = @closed ? [0, 0] : @spec.values_at('phase_ns', 'period_ns')
      last_ns = @closed ? 2**63 : start_ns + @spec['duration_ns'] + @spec['overrun_ns']
      while (index = @lock.synchronize { (@next += 1) - 1 }) < @sent[:scheduled]
        due_ns = start_ns + phase_ns + index * period_ns
        break unless @lines.sleep_until(due_ns, @spec['spin_ns']) && (begin_ns = now) <= last_ns
        seq = @spec['node'] << 48 | index
        @shape.stamp(message, seq, begin_ns)
        end_ns, flags = outcome(message, seq, begin_ns, worker, &send)
        count_sent(begin_ns, end_ns, flags)
        record(seq, @closed ? begin_ns : due_ns, begin_ns, end_ns, message, flags)
      end
    end

    # Sends one message; returns its end and flags.
    def outcome(message, seq, begin_ns, worker)
      reply = yield message, @spec['timeout_ns'] / 1e9, worker
      end_ns = now
      return [end_ns, OK] if @topic
      return [UNKNOWN_NS, TIMEOUT] if reply.nil? || end_ns - begin_ns > @spec['timeout_ns']
      [end_ns, answer?(reply, message, seq) ? OK : CORRUPT]
    rescue *NOT_SENT
      [@topic ? now : UNKNOWN_NS, FAILED]
    end

    def count_sent(begin_ns, end_ns, flags)
      @lock.synchronize do
        @sent[:sent] += 1 unless flags == FAILED
        @sent[:begin_ns] = [@sent[:begin_ns] || begin_ns, begin_ns].min
        @sent[:end_ns] = end_ns == UNKNOWN_NS ? now : end_ns
        @done[:received] += 1 unless @topic || end_ns == UNKNOWN_NS
        @done[:corrupt] += 1 if flags == CORRUPT
      end
    end

    # Whether this reply is what call `seq` is due (C-23).
    def answer?(reply, message, seq)
      return reply == @shape.reply(message) if @spec['reply'] != 'echo' || @shape.literal
      @shape.check(reply).first(2) == [OK, seq]
    end

    # [seq, send_ns, flags] of an arrival; without seq it is not recorded.
    def arrive(message, now_ns)
      flags, seq, send_ns = @shape.check(message)
      @lock.synchronize do
        if flags == FOREIGN
          @done[:foreign] += 1
        elsif @shape.literal ? now_ns < start_ns : seq && seq & PROBE == PROBE
          @done[:probes] += 1
        else
          seq = @peer << 48 | @done[:received] if @shape.literal # C-22: arrivals are counted
          @arrival_ns = now_ns
          @done[:received] += 1 if seq
          @done[:corrupt] += 1 if flags == CORRUPT
          return [seq, send_ns, flags]
        end
      end
      [nil, send_ns, flags]
    end

    # Warm-up is told by the intended time, by the end where there is none (C-13).
    def record(seq, intended_ns, begin_ns, end_ns, message, flags)
      told_ns = intended_ns == UNKNOWN_NS ? end_ns : intended_ns
      flags |= WARM_UP if told_ns < start_ns + @spec['warmup_ns']
      peer, kind = @messages.empty? ? seq >> 48 : @peer, @topic ? 0 : 1
      @recorder.add(seq, intended_ns, begin_ns, end_ns, @shape.size(message), peer, kind, flags)
    end
  end
end
