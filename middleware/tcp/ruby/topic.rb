# frozen_string_literal: true

require_relative 'links'

# Publisher and subscriber: the publisher sends each message once to every subscriber.
module Topic
  def self.publish(kit)
    begin_ns = kit.now
    streams = Links.connect_all(kit)
    Links.ready(kit, streams[0].socket, streams.size, kit.now - begin_ns)
    kit.publish do |message|
      failed = streams.reject { |stream| sent?(stream, message) }
      raise Wattwire::SendFailed, "#{failed.size} subscribers did not take it" if failed.any?
    end
    streams.each(&:close)
  end

  def self.sent?(stream, message)
    stream.send(Stream::MESSAGE, 0, message)
    true
  rescue Wattwire::SendFailed
    false
  end

  def self.subscribe(kit)
    Links.serve(kit) { |_stream, frame| kit.received(frame[2]) }
  end
end
