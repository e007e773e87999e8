# frozen_string_literal: true

module Web
  # The role of a client that expects replies, for any library. A cell's subclass has
  # call(message, timeout_s, worker), the block of Kit#calls; library, the field of READY;
  # effective, its own settings in force for READY; and a persistent connection if @keep is true.
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
      @authority = kit.spec.tls_authority
    end

    def ready(discovery_ns)
      common = { keep_alive: @keep ? 'on' : 'off', transport: 'tcp/ipv4' }
      @kit.ready(
        matched: 1, discovery_ns: discovery_ns, effective: common.merge(effective),
        library: library.merge(build: RUBY_DESCRIPTION),
        guarantee: { delivery: 'reliable', ordering: 'none', overload: 'block' }
      )
    end
  end
end
