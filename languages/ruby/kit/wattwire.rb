# frozen_string_literal: true
# A node of wattwire in Ruby: contract/CONTRACT.md says what it does, ../README.md what cells call.
module Wattwire
  def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

  START_NS = now
  require 'json'
  class SendFailed < StandardError; end # not taken, or a failed call (C-36); the run goes on

  # Types and their keys (C-02).
  BOOLEAN = [true, false].method(:include?)
  LIST = ->(type) { ->(value) { value.is_a?(Array) && value.all?(type) } }
  KEYS = {
    String => %w[run cell pattern role loop pacing payload.encoding payload.literal reply
                 reply.literal verify tls.authority tls.certificate tls.key],
    Integer => %w[node index peers.count period_ns phase_ns duration_ns count count_beyond
                  warmup_ns overrun_ns timeout_ns outstanding_max quiet_ms linger_ms
                  ready_timeout_ms spin_ns payload.bytes payload.seed action.feedback
                  record.capacity],
    2 => %w[contract], LIST[Integer] => %w[peers.nodes], LIST[String] => %w[peers.endpoints]
  }.freeze

  # The harness has checked the values: only what would be misread is refused.
  def self.read_spec(path, settings, lines)
    spec = JSON.parse(File.read(path, encoding: 'UTF-8'))
    lines.fail(2, '--spec', '--spec: allowed: a JSON object') unless spec.is_a?(Hash)
    types = KEYS.flat_map { |type, keys| keys.map { |key| [key, type] } }.to_h
    types.merge!(settings.transform_keys { |name| "settings.#{name}" })
    wrong = (types.keys | spec.keys).find { |key| !types.key?(key) || !(types[key] === spec[key]) }
    return spec unless wrong
    lines.fail(2, wrong, "#{wrong}: found #{spec[wrong].inspect}; allowed: C-02's keys and types")
  rescue JSON::ParserError, SystemCallError => error
    lines.fail(2, '--spec', "--spec: #{error.message[0, 200]}; allowed: a file with a JSON object")
  end

  # What a run asks of the cell (C-03).
  def self.needed(spec)
    asked = %w[role pacing loop].map { |key| "#{key}.#{spec[key]}" }
    asked << "encoding.#{spec['payload.encoding']}"
    asked << "reply.#{spec['reply']}" unless spec['pattern'] == 'topic'
    asked << 'literal' unless spec['payload.literal'].empty?
    several = spec['loop'] == 'open' && spec['outstanding_max'] > 1
    several && %w[client ping].include?(spec['role']) ? asked << 'async_client' : asked
  end

  # Runs this node and ends the process. `roles`: role => callable that gets the kit; `settings`:
  # name => type; `capabilities`, `offers`: those of node.toml; `bytes_max`: encoding => the most.
  def self.run(roles:, settings:, capabilities:, offers: {}, bytes_max: {})
    lines, arguments = Lines.new, ARGV.each_slice(2).sort
    unless arguments.map(&:first) == %w[--out --spec] && ARGV.size == 4
      lines.fail(2, 'command line', "found #{ARGV.join(' ')}; allowed: --spec FILE --out DIR")
    end
    spec = read_spec(arguments[1][1], settings, lines)
    missing = needed(spec) - capabilities - roles.keys.map { |role| "role.#{role}" }
    encoding, bytes = spec.values_at('payload.encoding', 'payload.bytes')
    limits = { 'text' => 32, 'record' => 96 }.fetch(encoding, 16)..bytes_max.fetch(encoding, 2**26)
    fits = limits.cover?(bytes) || !spec['payload.literal'].empty?
    missing << "payload.bytes #{bytes}, only #{limits}" unless fits
    missing += offers.reject { |name, values| values.include?(spec["settings.#{name}"]) }.keys
    lines.fail(3, nil, "not in this cell: #{missing.join(', ')}") if missing.any?
    lines.listen
    kit = Kit.new(spec, lines)
    roles[spec['role']].call(kit)
    kit.finish(arguments[0][1])
    $stdout.flush
    exit!(0) # a library's exit handlers must not hold the process past the contract's second
  rescue Exception => error
    warn error.full_message(highlight: false)
    lines.fail(4, nil, "#{error.class}: #{error.message}")
  end

  # The dialogue with the harness: descriptor 3 and standard input (C-05, C-08, C-09).
  class Lines
    attr_reader :start_ns, :stop_ns # nil until GO and STOP came
    def initialize
      @out = IO.for_fd(3, 'w')
      @out.close_on_exec = true
      @lock, @changed = Mutex.new, ConditionVariable.new
      trap('TERM', 'SYSTEM_DEFAULT') # ends a process that is blocked in native code, too
    end

    def line(keyword, fields) = @out.syswrite("#{keyword} #{JSON.generate(fields)}\n")

    # ERROR: ends the process at once, whatever the middleware is doing.
    def fail(code, key, reason)
      line('ERROR', { code: code, key: key, reason: reason.scrub })
    ensure
      exit!(code)
    end

    def listen = Thread.new do
      $stdin.each_line(chomp: true) { |text| obey(text) }
      exit!(5)
    end

    def obey(text)
      start = text[/\AGO (\d+)\z/, 1]&.to_i
      known = start ? start > Wattwire.now : text == 'STOP'
      fail(2, 'GO', "found #{text}; allowed: GO <start in the future>, STOP") unless known
      start ? (@start_ns ||= start) : (@stop_ns ||= Wattwire.now)
      @lock.synchronize { @changed.broadcast }
    end

    def await_go = @lock.synchronize { @changed.wait(@lock) until @start_ns || @stop_ns }
    def await_stop = @lock.synchronize { @changed.wait(@lock) until @stop_ns }

    # False where STOP came first.
    def sleep_until(due_ns, spin_ns)
      while @stop_ns.nil? && (left_ns = due_ns - Wattwire.now).positive?
        next Thread.pass if left_ns <= spin_ns # others may have a reply to read
        @lock.synchronize { @changed.wait(@lock, (left_ns - spin_ns) / 1e9) unless @stop_ns }
      end
      @stop_ns.nil?
    end
  end

  UNKNOWN_NS, NEVER_NS, PROBE = -2**63, 2**62 - 1, 2**48 - 1
  FOREIGN, OK, WARM_UP, FAILED, TIMEOUT, CORRUPT = -1, 0, 1, 2, 4, 8 # the record's flags

  # The first `count` bytes of the fill (C-19): splitmix64, words little-endian.
  def self.fill(seed, count)
    mask = 2**64 - 1
    words = Array.new((count + 7) / 8) do
      seed = (seed + 0x9E3779B97F4A7C15) & mask
      z = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & mask
      z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
      z ^ (z >> 31)
    end
    words.pack('Q<*')[0, count]
  end

  # The characters of C-20 for bytes of the fill.
  def self.text(bytes) = bytes.tr("\x00-\xFF".b, 'A-Za-z0-9\-_' * 4)

  # Byte strings: bytes, text, literal (C-19 to C-23). `nodes` are those of this run's sequences.
  class Payload
    attr_reader :literal
    def initialize(spec, nodes)
      @nodes, @full, @text = nodes, spec['verify'] == 'full', spec['payload.encoding'] == 'text'
      @literal = spec['payload.literal'].b unless spec['payload.literal'].empty?
      @reply, @reply_literal = spec['reply'], spec['reply.literal'].b
      @length, @word = spec['payload.bytes'], @text ? 16 : 8 # what a sequence takes
      @trailer = @length >= 3 * @word ? @word : 0
      @fill = Wattwire.fill(spec['payload.seed'], [0, @length - 2 * @word - @trailer].max)
      @fill = Wattwire.text(@fill) if @text
    end

    # A message of one's own, to be stamped again and again.
    def message = @literal || "\0".b * (2 * @word) + @fill + "\0".b * @trailer
    def size(message) = message.bytesize

    def stamp(message, seq, send_ns)
      return if @literal
      head = [seq, send_ns].pack('Q<q<')
      head = head.unpack1('H*').force_encoding(Encoding::BINARY) if @text
      message[0, 2 * @word] = head
      message[-@word, @word] = head[0, @word] if @trailer.positive?
    end

    # [OK, CORRUPT or FOREIGN; sequence or nil; send time in ns] of an arrival, by C-21.
    def check(message)
      return [message == @literal ? OK : CORRUPT, nil, UNKNOWN_NS] if @literal
      head = @text ? [message[0, 2 * @word][/\A([0-9a-f]{2})*/]].pack('H*') : message
      seq, send_ns = head.unpack('Q<q<')
      return [CORRUPT, nil, UNKNOWN_NS] unless seq
      ours = @nodes.include?(seq >> 48)
      ours &&= @fill.start_with?(message[2 * @word, [8, @fill.bytesize].min] || '')
      good = send_ns && message.bytesize == @length
      good &&= message[@length - @trailer, @trailer] == message[0, @trailer]
      good &&= !@full || message[2 * @word, @fill.bytesize] == @fill
      [ours ? (good ? OK : CORRUPT) : FOREIGN, seq, send_ns || UNKNOWN_NS]
    end

    def reply(request)
      @reply == 'echo' ? request : (@reply == 'ack' ? request[0, @word] : @reply_literal)
    end
  end

  # The record of C-32: nested hashes as JSON has them. The verbs are those of Payload.
  class Record
    UNREADABLE = :unreadable # what a cell hands over where its decoder refused an arrival

    # What a JSON library has read with symbolize_names, or UNREADABLE where it is no record.
    def self.checked(found)
      case found
      in { header: { seq: /\A\d{1,20}\z/, send_ns: /\A-?\d{1,19}\z/ }, name: String,
           pose: { position: { x: Numeric, y: Numeric, z: Numeric },
                   orientation: { x: Numeric, y: Numeric, z: Numeric, w: Numeric } },
           samples: Array => samples, trailer: { seq: /\A\d{1,20}\z/ } }
        samples.all? { _1 in { id: Integer, state: Integer, value: Numeric } } ? found : UNREADABLE
      else UNREADABLE
      end
    end

    def initialize(spec, nodes)
      @nodes, @full, count = nodes, spec['verify'] == 'full', (spec['payload.bytes'] - 96) / 16
      @reply, @reply_literal = spec['reply'], spec['reply.literal']
      fill = Wattwire.fill(spec['payload.seed'], 8 * (9 + count))
      v = fill.unpack('l<*').each_slice(2).map { |_, upper| upper / 1024.0 }
      @name = Wattwire.text(fill[0, 16]).force_encoding(Encoding::UTF_8)
      @pose = { position: { x: v[2], y: v[3], z: v[4] },
                orientation: { x: v[5], y: v[6], z: v[7], w: v[8] } }
      @samples = Array.new(count) { { id: _1, state: fill.getbyte(72 + 8 * _1), value: v[9 + _1] } }
    end

    def literal = nil
    def message = stamp({ header: 0, name: @name, pose: @pose, samples: @samples }, 0, 0)
    def size(message) = 96 + 16 * message[:samples].size

    def stamp(message, seq, send_ns)
      message.merge!(header: { seq: seq.to_s, send_ns: send_ns.to_s }, trailer: { seq: seq.to_s })
    end

    def check(message)
      return [CORRUPT, nil, UNKNOWN_NS] if message == UNREADABLE
      seq, send_ns = message[:header].values_at(:seq, :send_ns).map(&:to_i)
      ours = @nodes.include?(seq >> 48) && message[:name] == @name
      good = message[:samples].size == @samples.size && message[:trailer][:seq].to_i == seq
      good &&= !@full || (message[:pose] == @pose && message[:samples] == @samples)
      [ours ? (good ? OK : CORRUPT) : FOREIGN, seq, send_ns]
    end

    def reply(request)
      return request if @reply == 'echo'
      zeros = @pose.transform_values { |part| part.transform_values { 0.0 } }
      empty = message.merge(name: '', pose: zeros, samples: [])
      empty.merge(@reply == 'ack' ? request.slice(:header, :trailer) : { name: @reply_literal })
    end
  end

  # What a role works with; safe in several threads.
  class Kit
    ROLES = %w[publisher subscriber server client action_server action_client ping pong].freeze
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
      @records = "\0".b * (40 * spec['record.capacity'])
      @added = @next = @arrival_ns = 0
      left_ns, period_ns = spec['duration_ns'] - spec['phase_ns'], [spec['period_ns'], 1].max
      scheduled = @closed ? spec['count'] : [(left_ns + period_ns - 1) / period_ns, 0].max
      @sent = { begin_ns: nil, end_ns: nil, sent: 0, scheduled: scheduled, skipped: 0 }
      @done = { received: 0, foreign: 0, corrupt: 0, probes: 0 }
      @timeout_ns, @warmup_ns = spec.values_at('timeout_ns', 'warmup_ns')
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    def setting(name) = @spec.fetch("settings.#{name}")
    def listening(*endpoints) = @lines.line('LISTENING', { endpoints: endpoints })

    # The fields of READY beside startup_ns.
    def ready(fields)
      @lines.line('READY', { discovery_ns: nil, startup_ns: now - START_NS, **fields })
    end

    # Asks the block until it is true, for ready_timeout_ms at most; returns the ns it took.
    def await(what)
      begin_ns, end_ns = now, START_NS + 1_000_000 * @spec['ready_timeout_ms']
      until yield
        raise "no #{what} within ready_timeout_ms; #{@refusal}" if now > end_ns
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
        yield @messages[0], @spec['ready_timeout_ms'] / 1e3, 0 # given up, it would pile up there
      rescue *NOT_SENT => @refusal
        nil
      end
    end

    # Yields (message, timeout_s, worker) for each message that is due, in `workers` threads. The
    # block returns the reply (a publisher's: anything), nil at the timeout, or raises SendFailed.
    def calls(&send)
      @lines.await_go
      others = Array.new(@workers - 1) { |index| Thread.new { work(index + 1, &send) } }
      found, first_ns, last_ns = [work(0, &send), *others.map(&:value)].transpose
      found = found.transpose.map(&:sum)
      @sent.merge!(sent: found.sum - (@topic ? found[FAILED] : 0), begin_ns: first_ns.compact.min,
                   end_ns: last_ns.compact.max)
      @done[:received], @done[:corrupt] = found[OK] + found[CORRUPT], found[CORRUPT] unless @topic
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
      linger_ns = @lines.stop_ns + 1_000_000 * @spec['linger_ms']
      @arrival_ns = [@arrival_ns, @lines.stop_ns].max
      sleep(0.01) until now > [@arrival_ns + 1_000_000 * @spec['quiet_ms'], linger_ns].min
    end

    # Writes the samples (C-24) and prints DONE.
    def finish(out)
      recorded = [@added, @spec['record.capacity']].min
      overflow = @added - recorded
      head = ['WATTWIRE', 1, 64, 40, ROLES.index(@spec['role']), 1, @spec['node'], 0, 0,
              recorded, overflow, @spec['payload.seed'], ''].pack('a8S<S<S<CCS<S<L<Q<Q<Q<a16')
      File.binwrite(File.join(out, 'samples.bin'), head + @records[0, 40 * recorded])
      @lines.line('DONE', @done.merge(sent: @sent[:sent], recorded: recorded, overflow: overflow))
    end

    # A record of C-25's eight fields, as long as there is room (C-26).
    def add(*fields)
      @lock.synchronize do
        @records[40 * @added, 40] = fields.pack('Q<q<q<q<L<S<CC') if 40 * @added < @records.size
        @added += 1
      end
    end

    private
    def start_ns = @lines.start_ns || NEVER_NS

    # One worker: whoever is free takes the next message and waits until it is due (C-10, C-33).
    def work(worker, &send)
      message, node, spin_ns = @messages[worker], *@spec.values_at('node', 'spin_ns')
      last_ns = @closed ? NEVER_NS : start_ns + @spec['duration_ns'] + @spec['overrun_ns']
      found = Array.new(CORRUPT + 1, 0) # messages, by their flags
      most = @sent[:scheduled] + @spec['count_beyond']
      while (index = @lock.synchronize { (@next += 1) - 1 }) < most
        due_ns = start_ns + (@closed ? 0 : @spec['phase_ns'] + index * @spec['period_ns'])
        break unless @lines.sleep_until(due_ns, spin_ns)
        @lines.line('COUNTED', {}) if index == @sent[:scheduled]
        break unless (begin_ns = now) <= last_ns
        @shape.stamp(message, seq = node << 48 | index, begin_ns)
        first_ns ||= begin_ns
        end_ns, flags = outcome(message, seq, begin_ns, worker, &send)
        record(seq, @closed ? begin_ns : due_ns, begin_ns, end_ns, message, flags)
        found[flags] += 1
      end
      [found, first_ns, end_ns == UNKNOWN_NS ? now : end_ns]
    end

    # Sends one message and checks its reply (C-23); returns its end and flags.
    def outcome(message, seq, begin_ns, worker)
      reply = yield message, @timeout_ns / 1e9, worker
      end_ns = now
      return [end_ns, OK] if @topic
      return [UNKNOWN_NS, TIMEOUT] if reply.nil? || end_ns - begin_ns > @timeout_ns
      plain = @spec['reply'] == 'echo' && @shape.literal.nil?
      good = plain ? @shape.check(reply)[0, 2] == [OK, seq] : reply == @shape.reply(message)
      [end_ns, good ? OK : CORRUPT]
    rescue *NOT_SENT
      [@topic ? now : UNKNOWN_NS, FAILED]
    end

    # [seq, send_ns, flags] of an arrival; without seq it is not recorded.
    def arrive(message, now_ns)
      flags, seq, send_ns = @shape.check(message)
      probe = @shape.literal ? now_ns < start_ns : seq && seq & PROBE == PROBE
      what = flags == FOREIGN ? :foreign : (probe ? :probes : :received)
      @lock.synchronize do
        seq = @peer << 48 | @done[:received] if @shape.literal # C-22: arrivals are counted
        @done[what] += 1 if seq
        @done[:corrupt] += 1 if flags == CORRUPT && !probe
        @arrival_ns = now_ns if what == :received
      end
      [what == :received ? seq : nil, send_ns, flags]
    end

    # Warm-up is told by the intended time, by the end where there is none (C-13).
    def record(seq, intended_ns, begin_ns, end_ns, message, flags)
      told_ns = intended_ns == UNKNOWN_NS ? end_ns : intended_ns
      flags |= WARM_UP if told_ns < start_ns + @warmup_ns
      peer, kind = @messages.empty? ? seq >> 48 : @peer, @topic ? 0 : 1
      add(seq, intended_ns, begin_ns, end_ns, @shape.size(message), peer, kind, flags)
    end
  end
end
