# frozen_string_literal: true

# `client.rb HOST PORT WARM CALLS`: calls per second of a JSON-RPC loop on Net::HTTP, without a kit.
require 'json'
require 'net/http'

TEXT = 'Hello World'
TYPE = { 'Content-Type' => 'application/json' }.freeze

def call(http, id)
  request = Net::HTTP::Post.new('/rpc', TYPE)
  request.body = JSON.generate(jsonrpc: '2.0', id: id, method: 'echo', params: [TEXT])
  response = http.request(request)
  reply = JSON.parse(response.body) if response.is_a?(Net::HTTPOK)
  return if reply && reply['id'] == id && reply['result'] == TEXT

  abort "#{response.code} #{response.body.inspect}, not #{TEXT}"
end

def now_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

host, port, warm, calls = ARGV
http = Net::HTTP.new(host, port.to_i, nil) # nil: no proxy from the environment, as the cell
http.open_timeout = http.read_timeout = http.write_timeout = 5
http.start do
  call(http, 0)
  $stdout.syswrite("begun\n")
  warm.to_i.times { |index| call(http, index + 1) }
  start_ns = now_ns
  $stdout.syswrite("warm\n")
  calls.to_i.times { |index| call(http, index + 1) }
  puts calls.to_i * 1e9 / (now_ns - start_ns)
end
