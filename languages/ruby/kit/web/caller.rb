# frozen_string_literal: true

module Web
  # The role of a client whose calls are answered, of any library. A cell's own class has
  # call(message, timeout_s, worker), as Kit#calls wants it; library, as READY has it; effective,
  # what READY tells beside what all clients do; and a connection that is kept where @keep is true.
  class Caller
    def self.run(kit)
      client = new(kit)
      call = client.method(:call)
      discovery_ns = kit.probe(&call)
      client.ready(discovery_ns)
      kit.calls(&call)
    end

    def initialize(kit)
      @kit = kit
      @keep = kit.setting('keep_alive') != 'off'
      @authority = kit.spec['tls.authority']
    end

    def ready(discovery_ns)
      everybodys = { keep_alive: @keep ? 'on' : 'off', transport: 'tcp/ipv4',
                     server_workers: @kit.setting('server_workers') }
      @kit.ready(
        matched: 1, discovery_ns: discovery_ns, effective: everybodys.merge(effective),
        library: library.merge(build: RUBY_DESCRIPTION),
        guarantee: { delivery: 'reliable', ordering: 'none', overload: 'block' }
      )
    end
  end
end
