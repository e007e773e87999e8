# frozen_string_literal: true

require_relative 'stream'

# The connections of a sender and of a listener, and READY of both.
module Links
  BACKLOG = 128

  # Returns a stream to each of peers.endpoints, in their order.
  def self.connect_all(kit)
    endpoints = kit.spec.peers_endpoints
    missing = endpoints.size < [1, kit.spec.peers_count].max
    raise "peers.endpoints: found #{endpoints}; allowed: HOST:PORT of every peer" if missing

    endpoints.map { |endpoint| Stream.connect(kit, endpoint) }
  end

  # Returns the address on which this node listens: the setting, or the host's if it is empty.
  def self.listen_address(kit)
    setting = kit.setting('bind_address')
    setting.empty? ? kit.spec.host_address : setting
  end

  # Listens, prints READY once peers.count peers have connected, and returns after the drain. Each
  # connection has a thread, which yields (stream, frame).
  def self.serve(kit, &handle)
    listener = Stream.socket(kit)
    listener.bind(Addrinfo.tcp(listen_address(kit), 0))
    listener.listen(BACKLOG)
    kit.listening("#{listen_address(kit)}:#{listener.local_address.ip_port}")
    accepted = 0
    Thread.new do
      loop do
        stream = Stream.new(kit, listener.accept[0])
        accepted += 1
        Thread.new { read(stream, &handle) }
      end
    end
    discovery_ns = kit.await_peers { accepted }
    ready(kit, listener, accepted, discovery_ns)
    kit.drain
  end

  def self.read(stream)
    loop { yield stream, stream.receive }
  rescue SystemCallError, IOError
    stream.close # the peer has left
  end

  # Prints READY with the options in force of `socket`.
  def self.ready(kit, socket, matched, discovery_ns)
    effective = {
      bind_address: listen_address(kit),
      tcp_nodelay: socket.getsockopt(:TCP, :NODELAY).bool,
      receive_buffer_bytes: socket.getsockopt(:SOCKET, :RCVBUF).int,
      send_buffer_bytes: socket.getsockopt(:SOCKET, :SNDBUF).int,
      segment_bytes: socket.getsockopt(:TCP, :MAXSEG).int, transport: 'tcp/ipv4'
    }
    kit.ready(
      matched: matched, discovery_ns: discovery_ns, effective: effective,
      library: { name: 'socket', version: RUBY_VERSION, build: RUBY_DESCRIPTION },
      guarantee: { delivery: 'reliable', ordering: 'per_sender', overload: 'block' }
    )
  end
end
