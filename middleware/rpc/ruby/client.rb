# frozen_string_literal: true

require 'json'
require 'net/http'

# The client: JSON-RPC 2.0 by Net::HTTP, a connection for each worker.
class Client

  def self.run(kit)
    client = new(kit)
    call = client.method(:call)
    discovery_ns = kit.probe(&call)
    client.ready(discovery_ns)
    kit.calls(&call)
  end

  def initialize(kit)
    @kit = kit
    @address = URI(kit.spec['peers.endpoints'].fetch(0))
    @record = kit.spec['payload.encoding'] == 'record'
    @keep = kit.setting('keep_alive') != 'off'
    @authority = kit.spec['tls.authority']
    @not_sent = [SystemCallError, IOError, SocketError, Net::OpenTimeout]
    @not_sent << OpenSSL::SSL::SSLError unless @authority.empty?
    @connections = Array.new(kit.workers) { connection }
    @numbered = Array.new(kit.workers, 0) # a response belongs to its connection: ids repeat there
  end

  # The reply, nil at the timeout, an unreadable one for an error; raises where nothing was sent.
  def call(message, timeout_s, worker)
    http = @connections[worker]
    deadline_ns = @kit.now + (timeout_s * 1e9).to_i
    connect(http, timeout_s)
    http.read_timeout = http.write_timeout = [(deadline_ns - @kit.now) / 1e9, 0.000_001].max
    id = @numbered[worker] += 1
    response = http.request(request(id, message))
    response.is_a?(Net::HTTPOK) ? result(response.body, id) : unreadable
  rescue Net::ReadTimeout, Net::WriteTimeout
    http.finish if http.started? # the late response must not answer the next call
    nil
  rescue *@not_sent => error
    http.finish if http.started?
    raise Wattwire::SendFailed, error.message
  end

  def ready(discovery_ns)
    socket = @connections[0].instance_variable_get(:@socket)&.io # Net::HTTP has no other way to it
    tls = @authority.empty? ? 'none' : socket&.ssl_version || 'on'
    socket = socket&.to_io
    nodelay = socket && !socket.closed? && socket.getsockopt(:TCP, :NODELAY).bool
    effective = { keep_alive: @keep ? 'on' : 'off', transport: 'tcp/ipv4', tls: tls,
                  tcp_nodelay: nodelay.nil? ? 'default' : nodelay,
                  server_workers: @kit.setting('server_workers') }
    @kit.ready(
      matched: 1, discovery_ns: discovery_ns, effective: effective,
      library: { name: 'Net::HTTP', version: RUBY_VERSION, build: RUBY_DESCRIPTION },
      guarantee: { delivery: 'at_most_once', ordering: 'none', overload: 'block' }
    )
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

  def request(id, message)
    method = @record ? 'echo_record' : 'echo'
    message = message.dup.force_encoding(Encoding::UTF_8) unless @record
    made = Net::HTTP::Post.new(@address.path, 'Content-Type' => 'application/json')
    made['Connection'] = 'close' unless @keep
    made.body = JSON.generate(jsonrpc: '2.0', id: id, method: method, params: [message])
    made
  end

  def result(body, id)
    case JSON.parse(body, symbolize_names: true)
    in { jsonrpc: '2.0', id: ^id, result: found }
      @record ? Wattwire::Record.checked(found) : found.to_s.b
    else unreadable
    end
  rescue JSON::ParserError
    unreadable
  end

  def unreadable = @record ? Wattwire::Record::UNREADABLE : ''
end
