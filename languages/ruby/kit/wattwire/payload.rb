# frozen_string_literal: true

module Wattwire
  # Byte strings with a sequence: encoding bytes and text (C-19 to C-21).
  class Payload
    def initialize(spec, nodes)
      @nodes = nodes
      @full = spec.verify == 'full'
      @text = spec.payload_encoding == 'text'
      @reply_kind = spec.reply
      @reply_literal = spec.reply_literal.b
      @length = spec.payload_bytes
      @word = @text ? 16 : 8 # the length of a sequence
      @header = 2 * @word
      @trailer = @length >= 3 * @word ? @word : 0
      bytes = Fill.bytes(spec.payload_seed, [0, @length - @header - @trailer].max)
      @fill = @text ? Fill.text(bytes) : bytes
      @first_word = [8, @fill.bytesize].min
    end

    def message = ("\0".b * @header) + @fill + ("\0".b * @trailer)
    def size(message) = message.bytesize

    def stamp(message, seq, send_ns)
      head = [seq, send_ns].pack('Q<q<')
      head = head.unpack1('H*').force_encoding(Encoding::BINARY) if @text
      message[0, @header] = head
      message[-@word, @word] = head[0, @word] if @trailer.positive?
    end

    def check(message)
      head = @text ? [message[0, @header][/\A([0-9a-f]{2})*/]].pack('H*') : message
      seq, send_ns = head.unpack('Q<q<')
      return UNREADABLE unless seq
      return [FOREIGN, seq, send_ns || UNKNOWN_NS] unless ours?(message, seq)
      return [CORRUPT, seq, send_ns || UNKNOWN_NS] unless send_ns && intact?(message)

      [OK, seq, send_ns]
    end

    def reply(request)
      return request if @reply_kind == 'echo'

      @reply_kind == 'ack' ? request[0, @word] : @reply_literal
    end

    def answers?(arrival, message, seq)
      return arrival == reply(message) unless @reply_kind == 'echo'
      return true if arrival == message

      verdict, arrival_seq = check(arrival) # the send time may differ
      verdict == OK && arrival_seq == seq
    end

    private

    def ours?(message, seq)
      @nodes.include?(seq >> 48) && @fill.start_with?(message[@header, @first_word] || '')
    end

    def intact?(message)
      return false unless message.bytesize == @length
      return false unless message[@length - @trailer, @trailer] == message[0, @trailer]

      !@full || message[@header, @fill.bytesize] == @fill
    end
  end

  # The same bytes in each message: they carry no sequence (C-22).
  class Literal
    INTACT = [OK, nil, UNKNOWN_NS].freeze

    def initialize(spec)
      @literal = spec.payload_literal.b
      @reply_kind = spec.reply
      @reply_literal = spec.reply_literal.b
      @word = spec.payload_encoding == 'text' ? 16 : 8
    end

    def message = @literal
    def size(message) = message.bytesize
    def stamp(_message, _seq, _send_ns) = nil
    def check(message) = message == @literal ? INTACT : UNREADABLE

    def reply(request)
      return request if @reply_kind == 'echo'

      @reply_kind == 'ack' ? request[0, @word] : @reply_literal
    end

    def answers?(arrival, message, _seq) = arrival == reply(message)
  end
end
