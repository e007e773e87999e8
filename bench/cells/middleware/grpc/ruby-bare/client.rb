# frozen_string_literal: true

# `client.rb HOST PORT WARM CALLS`: calls per second of a loop on a stub of grpc, without a kit.
require 'grpc'
require 'wattwire_services_pb'

TEXT = 'Hello World'

def call(stub)
  reply = stub.text(Wattwire::TextPayload.new(data: TEXT), deadline: Time.now + 5)
  abort "#{reply.data.inspect}, not #{TEXT}" unless reply.data == TEXT
end

def now_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

host, port, warm, calls = ARGV
stub = Wattwire::Calls::Stub.new("#{host}:#{port}", :this_channel_is_insecure)
call(stub)
$stdout.syswrite("begun\n")
warm.to_i.times { call(stub) }
start_ns = now_ns
$stdout.syswrite("warm\n")
calls.to_i.times { call(stub) }
puts calls.to_i * 1e9 / (now_ns - start_ns)
