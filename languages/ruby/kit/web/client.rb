# frozen_string_literal: true

require 'net/http'
require 'web/caller'

module Web
  # The client of a cell over HTTP: Net::HTTP, with a connection for each worker. A cell's subclass
  # has type, the content type of requests; body(message, worker), their text; and
  # reply(text, worker), the kit's reply, or nil if the text is not a reply.
  class Client < Caller
    def initialize(kit)
      super
      @address = URI(kit.spec.peers_endpoints.fetch(0))
      @record = kit.spec.payload_encoding == 'record'
      @not_sent = [SystemCallError, IOError, SocketError, Net::OpenTimeout]
      @not_sent << OpenSSL::SSL::SSLError unless @authority.empty?
      @connections = Array.new(kit.workers) { connection }
    end

    # Returns the reply, nil at the timeout; raises SendFailed if the call failed (C-36).
    def call(message, timeout_s, worker)
      http = @connections[worker]
      deadline_ns = @kit.now + (timeout_s * 1e9).to_i
      connect(http, timeout_s)
      http.read_timeout = http.write_timeout = [(deadline_ns - @kit.now) / 1e9, 0.000_001].max
      response = http.request(request(message, worker))
      raise Wattwire::SendFailed, "HTTP status #{response.code}" unless response.is_a?(Net::HTTPOK)

      reply(response.body, worker) || (@record ? Wattwire::Record::UNREADABLE : '')
    rescue Net::ReadTimeout, Net::WriteTimeout
      http.finish if http.started? # the late response must not answer the next call
      nil
    rescue *@not_sent => error
      http.finish if http.started?
      raise Wattwire::SendFailed, error.message
    end

    def library = { name: 'Net::HTTP', version: RUBY_VERSION }

    def effective
      # Net::HTTP has no public method that returns its socket.
      socket = @connections[0].instance_variable_get(:@socket)&.io
      tls = @authority.empty? ? 'none' : socket&.ssl_version || 'on'
      socket = socket&.to_io
      nodelay = socket && !socket.closed? && socket.getsockopt(:TCP, :NODELAY).bool
      { http_version: '1.1', tcp_nodelay: nodelay.nil? ? 'default' : nodelay, tls: tls }
    end

    private

    def connection
      http = Net::HTTP.new(@address.host, @address.port, nil) # nil: no proxy
      http.use_ssl = !@authority.empty?
      http.ca_file = @authority if http.use_ssl?
      http
    end

    def connect(http, timeout_s)
      http.finish if http.started? && !@keep
      return if http.started?

      http.open_timeout = timeout_s
      http.start
    end

    def request(message, worker)
      post = Net::HTTP::Post.new(@address.path, 'Content-Type' => type)
      post['Connection'] = 'close' unless @keep
      post.body = body(message, worker)
      post
    end
  end
end
