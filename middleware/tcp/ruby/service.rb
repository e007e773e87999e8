# frozen_string_literal: true

require_relative 'links'

# Client and server, ping and pong: the frame's number identifies the call of a reply.
module Service
  # Overlapping calls over one connection: a thread reads replies and wakes their callers.
  class Calls
    Waiting = Struct.new(:woken, :reply)

    def initialize(kit, stream)
      @kit = kit
      @stream = stream
      @lock = Mutex.new
      @waiting = {}
      Thread.new { read }
    end

    def call(number, message, timeout_s)
      deadline_ns = @kit.now + (timeout_s * 1e9).to_i
      waiting = Waiting.new(ConditionVariable.new)
      @lock.synchronize { @waiting[number] = waiting }
      @stream.send(Stream::REQUEST, number, message)
      @lock.synchronize do
        while waiting.reply.nil? && (left_ns = deadline_ns - @kit.now).positive?
          raise Wattwire::SendFailed, 'the server closed the connection' if @ended

          waiting.woken.wait(@lock, left_ns / 1e9)
        end
      end
      waiting.reply
    ensure
      @lock.synchronize { @waiting.delete(number) }
    end

    private

    def read
      loop do
        kind, number, reply = @stream.receive
        @lock.synchronize do
          waiting = @waiting[number] if kind == Stream::REPLY
          waiting&.reply = reply
          waiting&.woken&.signal
        end
      end
    rescue SystemCallError, IOError
      @lock.synchronize do
        @ended = true
        @waiting.each_value { |waiting| waiting.woken.signal }
      end
    end
  end

  def self.call(stream, number, message, timeout_s)
    deadline_ns = Wattwire.now + (timeout_s * 1e9).to_i
    stream.send(Stream::REQUEST, number, message)
    loop do
      frame = stream.receive([0, (deadline_ns - Wattwire.now) / 1e9].max)
      return frame && frame[2] if frame.nil? || frame.first(2) == [Stream::REPLY, number]
    end
  end

  def self.client(kit)
    stream = Links.connect_all(kit)[0]
    lock = Mutex.new
    count = 0
    overlapping = nil
    call = lambda do |message, timeout_s|
      number = lock.synchronize { (count += 1) - 1 }
      next overlapping.call(number, message, timeout_s) if overlapping

      call(stream, number, message, timeout_s)
    end
    discovery_ns = kit.probe { |message, timeout_s| call.call(message, timeout_s) }
    overlapping = Calls.new(kit, stream) if kit.workers > 1
    Links.ready(kit, stream.socket, 1, discovery_ns)
    kit.calls { |message, timeout_s| call.call(message, timeout_s) }
    stream.close
  end

  def self.server(kit)
    Links.serve(kit) do |stream, (_kind, number, request)|
      kit.serve(request) { |reply| stream.send(Stream::REPLY, number, reply) }
    rescue Wattwire::SendFailed
      nil # the client has left; it records the call itself
    end
  end
end
