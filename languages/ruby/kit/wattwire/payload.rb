# frozen_string_literal: true

module Wattwire
  UNKNOWN_NS, PROBE = -2**63, 2**48 - 1
  OK, CORRUPT, FOREIGN = 0, 8, -1 # CORRUPT is the record's flag

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
      seq, send_ns = read_header(message)
      return [CORRUPT, nil, UNKNOWN_NS] unless seq
      send_ns ||= UNKNOWN_NS
      first = message.byteslice(2 * @word, [8, @fill.bytesize].min) || ''
      return [FOREIGN, seq, send_ns] unless @nodes.include?(seq >> 48) && @fill.start_with?(first)
      good = message.bytesize == @length
      good &&= message.byteslice(@length - @trailer, @trailer) == message.byteslice(0, @trailer)
      good &&= !@full || message.byteslice(2 * @word, @fill.bytesize) == @fill
      [good ? OK : CORRUPT, seq, send_ns]
    end

    def reply(request)
      { 'echo' => request, 'ack' => request.byteslice(0, @word) }.fetch(@reply, @reply_literal)
    end

    # [seq, send_ns], nil where it is not there or no lower-case hexadecimal number.
    def read_header(message)
      return message.unpack('Q<q<') unless @text
      head = message.byteslice(0, 2 * @word)
      [head[0, head.size & ~1]].pack('H*').unpack('Q<q<') if head.match?(/\A[0-9a-f]*\z/)
    end
  end

  # The record of C-32: nested hashes as JSON has them. The verbs are those of Payload.
  class Record
    UNREADABLE = :unreadable # what a cell hands over where its decoder refused an arrival
    U32 = ->(value) { value.is_a?(Integer) && value.between?(0, 2**32 - 1) }
    attr_reader :literal # always nil

    # What a JSON library has read with symbolize_names, or UNREADABLE where it is no record.
    def self.checked(found)
      case found
      in { header: { seq: /\A\d{1,20}\z/, send_ns: /\A-?\d{1,19}\z/ }, name: String,
           pose: { position: { x: Numeric, y: Numeric, z: Numeric },
                   orientation: { x: Numeric, y: Numeric, z: Numeric, w: Numeric } },
           samples: Array => samples, trailer: { seq: /\A\d{1,20}\z/ } }
        samples.all? { _1 in { id: U32, state: U32, value: Numeric } } ? found : UNREADABLE
      else UNREADABLE
      end
    end

    def self.from_json(text)
      checked(JSON.parse(text, symbolize_names: true))
    rescue JSON::ParserError, EncodingError
      UNREADABLE
    end

    def initialize(spec, nodes)
      @nodes, @full, count = nodes, spec['verify'] == 'full', (spec['payload.bytes'] - 96) / 16
      @reply, @reply_literal = spec['reply'], spec['reply.literal']
      fill = Wattwire.fill(spec['payload.seed'], 8 * (9 + count))
      v = fill.unpack('l<*').each_slice(2).map { |_, upper| upper / 1024.0 }
      pose = { position: { x: v[2], y: v[3], z: v[4] },
               orientation: { x: v[5], y: v[6], z: v[7], w: v[8] } }
      samples = Array.new(count) { { id: _1, state: fill.getbyte(72 + 8 * _1), value: v[9 + _1] } }
      name = Wattwire.text(fill[0, 16]).force_encoding(Encoding::UTF_8)
      @due = { header: nil, name: name, pose: pose, samples: samples, trailer: nil }
      zeros = pose.transform_values { |part| part.transform_values { 0.0 } }
      @empty = stamp({ header: nil, name: '', pose: zeros, samples: [], trailer: nil }, 0, 0)
    end

    def message = @due.dup

    def size(message) = 96 + 16 * message[:samples].size

    def stamp(message, seq, send_ns)
      message.merge!(header: { seq: seq.to_s, send_ns: send_ns.to_s }, trailer: { seq: seq.to_s })
    end

    def check(message)
      return [CORRUPT, nil, UNKNOWN_NS] if message == UNREADABLE
      seq, send_ns = message[:header].values_at(:seq, :send_ns).map(&:to_i)
      ours = @nodes.include?(seq >> 48) && message[:name] == @due[:name]
      return [FOREIGN, seq, send_ns] unless ours
      good = message[:samples].size == @due[:samples].size && message[:trailer][:seq].to_i == seq
      good &&= !@full || %i[pose samples].all? { |part| message[part] == @due[part] }
      [good ? OK : CORRUPT, seq, send_ns]
    end

    def reply(request)
      return request if @reply == 'echo'
      @empty.merge(@reply == 'ack' ? request.slice(:header, :trailer) : { name: @reply_literal })
    end
  end
end
