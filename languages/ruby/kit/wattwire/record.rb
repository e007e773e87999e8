# frozen_string_literal: true

module Wattwire
  # The record of C-32: nested hashes with the names of its JSON.
  class Record
    UNREADABLE = :unreadable # handed over by a cell whose decoder refused an arrival
    HEADER_BYTES = 96
    SAMPLE_BYTES = 16

    # Returns the result of a JSON library with symbolize_names if it is a record, else UNREADABLE.
    def self.checked(decoded)
      case decoded
      in { header: { seq: /\A\d{1,20}\z/, send_ns: /\A-?\d{1,19}\z/ }, name: String,
           pose: { position: { x: Numeric, y: Numeric, z: Numeric },
                   orientation: { x: Numeric, y: Numeric, z: Numeric, w: Numeric } },
           samples: Array => samples, trailer: { seq: /\A\d{1,20}\z/ } }
        readable = samples.all? { _1 in { id: Integer, state: Integer, value: Numeric } }
        readable ? decoded : UNREADABLE
      else UNREADABLE
      end
    end

    def initialize(spec, nodes)
      @nodes = nodes
      @full = spec.verify == 'full'
      @reply_kind = spec.reply
      count = (spec.payload_bytes - HEADER_BYTES) / SAMPLE_BYTES
      fill = Fill.bytes(spec.payload_seed, 8 * (9 + count))
      v = fill.unpack('l<*').each_slice(2).map { |_, upper| upper / 1024.0 }
      @name = Fill.text(fill[0, 16]).force_encoding(Encoding::UTF_8)
      @pose = { position: { x: v[2], y: v[3], z: v[4] },
                orientation: { x: v[5], y: v[6], z: v[7], w: v[8] } }
      @samples = Array.new(count) do |id|
        { id: id, state: fill.getbyte(72 + (8 * id)), value: v[9 + id] }
      end
      @empty = empty(spec.reply == 'literal' ? spec.reply_literal : '')
    end

    def message = stamp({ header: 0, name: @name, pose: @pose, samples: @samples }, 0, 0)
    def size(message) = HEADER_BYTES + (SAMPLE_BYTES * message[:samples].size)

    def stamp(message, seq, send_ns)
      message.merge!(header: { seq: seq.to_s, send_ns: send_ns.to_s }, trailer: { seq: seq.to_s })
    end

    def check(message)
      return Wattwire::UNREADABLE if message == UNREADABLE

      seq, send_ns = message[:header].values_at(:seq, :send_ns).map(&:to_i)
      ours = @nodes.include?(seq >> 48) && message[:name] == @name
      return [FOREIGN, seq, send_ns] unless ours

      [intact?(message, seq) ? OK : CORRUPT, seq, send_ns]
    end

    def reply(request)
      return request if @reply_kind == 'echo'

      @reply_kind == 'ack' ? @empty.merge(request.slice(:header, :trailer)) : @empty
    end

    def answers?(arrival, message, seq)
      return arrival == reply(message) unless @reply_kind == 'echo'

      verdict, arrival_seq = check(arrival)
      verdict == OK && arrival_seq == seq
    end

    private

    def intact?(message, seq)
      return false unless message[:samples].size == @samples.size
      return false unless message[:trailer][:seq].to_i == seq

      !@full || (message[:pose] == @pose && message[:samples] == @samples)
    end

    # A record without samples, whose numbers are zeros.
    def empty(name)
      zeros = @pose.transform_values { |axes| axes.transform_values { 0.0 } }
      stamp({ header: 0, name: name, pose: zeros, samples: [] }, 0, 0)
    end
  end
end
