# frozen_string_literal: true

# `client.rb HOST PORT WARM CALLS`: calls per second of a loop on Net::HTTP, without a kit.
require 'net/http'

TEXT = 'Hello World'
TYPE = { 'Content-Type' => 'text/plain; charset=utf-8' }.freeze

def call(http)
  request = Net::HTTP::Post.new('/echo', TYPE)
  request.body = TEXT
  response = http.request(request)
  return if response.is_a?(Net::HTTPOK) && response.body == TEXT

  abort "#{response.code} #{response.body.inspect}, not #{TEXT}"
end

def now_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

host, port, warm, calls = ARGV
http = Net::HTTP.new(host, port.to_i, nil) # nil: no proxy from the environment, as the cell
http.open_timeout = http.read_timeout = http.write_timeout = 5
http.start do
  call(http)
  $stdout.syswrite("begun\n")
  warm.to_i.times { call(http) }
  start_ns = now_ns
  $stdout.syswrite("warm\n")
  calls.to_i.times { call(http) }
  puts calls.to_i * 1e9 / (now_ns - start_ns)
end
