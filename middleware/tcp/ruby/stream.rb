# frozen_string_literal: true

require 'io/wait'
require 'socket'

# A connection that carries frames: ../README.md defines their bytes and the waits.
class Stream
  HEAD_BYTES = 13
  MESSAGE = 0
  REQUEST = 1
  REPLY = 2
  READ_BYTES = 65_536

  # Returns an unconnected socket: buffer sizes must be set before the handshake.
  def self.socket(kit)
    socket = Socket.new(:INET, :STREAM)
    { RCVBUF: 'receive_buffer_bytes', SNDBUF: 'send_buffer_bytes' }.each do |option, name|
      socket.setsockopt(:SOCKET, option, kit.setting(name)) if kit.setting(name).positive?
    end
    socket.setsockopt(:TCP, :NODELAY, kit.setting('tcp_nodelay'))
    socket
  end

  # Connects to HOST:PORT within ready_timeout_ms.
  def self.connect(kit, endpoint)
    opened = socket(kit)
    address = Addrinfo.tcp(*endpoint.split(':', 2))
    if opened.connect_nonblock(address, exception: false) == :wait_writable
      in_time = opened.wait_writable(kit.spec.ready_timeout_ms / 1e3)
      raise "connect #{endpoint}: no answer within ready_timeout_ms" unless in_time

      begin
        opened.connect_nonblock(address)
      rescue Errno::EISCONN
        nil # connected
      end
    end
    new(kit, opened)
  end

  attr_reader :socket

  def initialize(kit, socket)
    @kit = kit
    @socket = socket
    @two_writes = kit.setting('writes') == 2
    @quickack = kit.setting('tcp_quickack') == 'on'
    @timeout_ns = kit.spec.timeout_ns
    @arrived = String.new(encoding: Encoding::BINARY)
    @chunk = String.new(capacity: READ_BYTES, encoding: Encoding::BINARY)
    @sending = Mutex.new
    acknowledge
  end

  def close = @socket.close

  # Hands a frame to the kernel. Raises SendFailed if the kernel's buffer stays full for timeout_ns
  # or the peer has left. A frame that was sent in part makes the stream unusable.
  def send(kind, number, payload)
    deadline_ns = @kit.now + @timeout_ns
    head = [payload.bytesize, kind, number].pack('L<CQ<')
    @sending.synchronize do
      if @two_writes
        write(head, deadline_ns)
        write(payload, deadline_ns) unless payload.empty?
      else
        write(head << payload, deadline_ns)
      end
    end
  rescue SystemCallError, IOError => error
    close
    raise Wattwire::SendFailed, error.message
  end

  # Returns the next frame [kind, number, payload], or nil if it is incomplete at the timeout
  # (nil: no timeout). Raises EOFError at the end of the stream.
  def receive(timeout_s = nil)
    deadline_ns = @kit.now + (timeout_s * 1e9).to_i if timeout_s
    until (frame = take)
      left_s = (deadline_ns - @kit.now) / 1e9 if timeout_s
      return if timeout_s && (left_s <= 0 || !@socket.wait_readable(left_s))

      @socket.wait_readable unless timeout_s
      read
    end
    frame
  end

  private

  def write(bytes, deadline_ns)
    until bytes.empty?
      taken = @socket.write_nonblock(bytes, exception: false)
      if taken == :wait_writable
        left_s = (deadline_ns - @kit.now) / 1e9
        raise IOError, "the peer's buffer stayed full" if left_s <= 0

        @socket.wait_writable(left_s)
      else
        bytes = taken == bytes.bytesize ? '' : bytes.byteslice(taken..)
      end
    end
  end

  # Reads the bytes that have arrived.
  def read
    count = [READ_BYTES, @missing.to_i].max
    result = @socket.read_nonblock(count, @chunk, exception: false)
    raise EOFError, 'the peer closed the connection' if result.nil?
    return if result == :wait_readable

    @arrived << @chunk
    acknowledge
  end

  # Returns the next complete frame, or nil.
  def take
    return if @arrived.bytesize < HEAD_BYTES

    length, kind, number = @arrived.unpack('L<CQ<')
    raise EOFError, 'no frame of this wire' if kind > REPLY || length > 2**26

    @missing = HEAD_BYTES + length - @arrived.bytesize
    return if @missing.positive?

    payload = @arrived.byteslice(HEAD_BYTES, length)
    @missing.zero? ? @arrived.clear : @arrived = @arrived.byteslice(HEAD_BYTES + length..)
    [kind, number, payload]
  end

  # Linux leaves this mode by itself (tcp(7)), so the option is set again after each read.
  def acknowledge
    @socket.setsockopt(:TCP, Socket::TCP_QUICKACK, true) if @quickack
  end
end
