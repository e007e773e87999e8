# frozen_string_literal: true

module Wattwire
  # The methods that a cell's roles call, safe in several threads.
  class Kit
    include Arrivals

    attr_reader :spec

    def initialize(spec, dialogue)
      @spec = spec
      @dialogue = dialogue
      sender = SENDERS.include?(spec.role)
      # A sender's arrivals are the echoes of its own messages.
      @messages = Wattwire.messages_of(spec, sender ? [spec.node] : spec.peers_nodes)
      @samples = Samples.new(spec.record_capacity)
      @peer = spec.peers_nodes.size == 1 ? spec.peers_nodes[0] : UNKNOWN_PEER
      @sender = Sender.new(spec, @peer, @messages, @samples, dialogue) if sender
      @kind = spec.pattern == 'topic' ? KIND_MESSAGE : KIND_CALL
      @literal = !spec.payload_literal.empty?
      @warmup_ns = spec.warmup_ns
      @lock = Mutex.new
      @received = @foreign = @corrupt = @probes = 0
      @arrival_ns = 0 # of the last message
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

    # Returns a setting by its name: for the start, not for each message.
    def setting(name) = @spec.settings.fetch(name)
    def workers = @sender.workers
    def listening(*endpoints) = @dialogue.line('LISTENING', { endpoints: endpoints })

    # Prints READY with these fields and startup_ns. Adds the settings that `effective` lacks, with
    # their requested values.
    def ready(effective:, **fields)
      known = @spec.settings.transform_keys(&:to_sym).merge(effective)
      @dialogue.line('READY', { discovery_ns: nil, startup_ns: now - START_NS, effective: known,
                                **fields })
    end

    # Waits until the block's number reaches peers.count; returns the ns it took.
    def await_peers = await("#{@spec.peers_count} peers") { yield >= @spec.peers_count }

    # Calls as `calls` does until a reply comes (C-07); returns the ns it took.
    def probe
      message = @messages.message
      timeout_s = @spec.ready_timeout_ms / 1e3 # abandoned probes would pile up in the server
      await('reply to a probe') do
        @probes += 1
        @messages.stamp(message, (@spec.node << 48) | PROBE_COUNTER, now)
        yield message, timeout_s, 0
      rescue *Sender::NOT_SENT => error
        @reason = error.message
        nil
      end
    end

    # Yields (message, timeout_s, worker) for each message that is due, in `workers` threads. The
    # block returns the reply (a publisher's: anything), nil at the timeout, or raises SendFailed.
    def calls(&send)
      @sender.run(&send)
      @received = @sender.received
      @corrupt = @sender.corrupt
    end
    alias publish calls

    # Writes the samples (C-24) and prints DONE.
    def finish(out)
      @samples.write(File.join(out, 'samples.bin'), @spec.role, @spec.node, @spec.payload_seed)
      @dialogue.line('DONE', { received: @received, foreign: @foreign, corrupt: @corrupt,
                               probes: @probes, sent: @sender ? @sender.sent : 0,
                               recorded: @samples.recorded, overflow: @samples.overflow })
    end

    private

    # Repeats the block until it is true, for ready_timeout_ms at most; returns the ns it took.
    def await(event)
      begin_ns = now
      end_ns = START_NS + (1_000_000 * @spec.ready_timeout_ms)
      until yield
        raise "no #{event} within ready_timeout_ms; #{@reason}" if now > end_ns

        sleep(0.002)
      end
      now - begin_ns
    end
  end
end
