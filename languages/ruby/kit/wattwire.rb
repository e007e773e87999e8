# frozen_string_literal: true

# A node of wattwire in Ruby: contract/CONTRACT.md says what it does, ../README.md what cells call.
module Wattwire
  def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

  START_NS = now
  require 'json'
  require_relative 'wattwire/lines'
  require_relative 'wattwire/payload'
  require_relative 'wattwire/kit'

  # Types and their keys (C-02); [T] is a list of T, any other list has the values themselves.
  KEYS = {
    String => %w[run cell pattern role loop pacing payload.encoding payload.literal reply
                 reply.literal verify tls.authority tls.certificate tls.key],
    Integer => %w[node index peers.count period_ns phase_ns duration_ns count warmup_ns overrun_ns
                  timeout_ns outstanding_max quiet_ms linger_ms ready_timeout_ms spin_ns
                  payload.bytes payload.seed action.feedback record.capacity],
    [2] => %w[contract], [Integer] => %w[peers.nodes], [String] => %w[peers.endpoints]
  }.freeze
  BYTES_MIN = { 'bytes' => 16, 'text' => 32, 'record' => 96 }.freeze

  def self.type?(value, type)
    return value.is_a?(type) unless type.is_a?(Array)
    return type.include?(value) unless type[0].is_a?(Class)
    value.is_a?(Array) && value.all?(type[0])
  end

  # The harness has checked the values: only what would be misread is refused.
  def self.read_spec(path, settings, lines)
    spec = JSON.parse(File.read(path, encoding: 'UTF-8'))
    lines.fail(2, '--spec', '--spec: allowed: a JSON object') unless spec.is_a?(Hash)
    types = KEYS.flat_map { |type, keys| keys.map { |key| [key, type] } }.to_h
    types.merge!(settings.transform_keys { |name| "settings.#{name}" })
    wrong = (types.keys | spec.keys).find { |key| !types[key] || !type?(spec[key], types[key]) }
    return spec unless wrong
    reason = "#{wrong}: found #{spec[wrong].inspect}; allowed: #{types[wrong] || 'no such key'}"
    lines.fail(2, wrong, reason)
  rescue JSON::ParserError, SystemCallError => error
    lines.fail(2, '--spec', "--spec: #{error.message[0, 200]}; allowed: a file with a JSON object")
  end

  # What a run asks of the cell (C-03).
  def self.needed(spec)
    found = ["encoding.#{spec['payload.encoding']}", "pacing.#{spec['pacing']}"]
    found += ["loop.#{spec['loop']}", "role #{spec['role']}"]
    found << "reply.#{spec['reply']}" unless spec['pattern'] == 'topic'
    found << 'literal' unless spec['payload.literal'].empty?
    overlapping = spec['loop'] == 'open' && spec['outstanding_max'] > 1
    overlapping && %w[client ping].include?(spec['role']) ? found << 'async_client' : found
  end

  # Runs this node and ends the process. `roles`: role => callable that gets the kit; `settings`:
  # name => type; `capabilities`: those of node.toml; `bytes_max`: encoding => longest payload.
  def self.run(roles:, settings:, capabilities:, bytes_max: {})
    lines, arguments = Lines.new, ARGV.each_slice(2).sort
    unless arguments.map(&:first) == %w[--out --spec] && ARGV.size == 4
      lines.fail(2, 'command line', "found #{ARGV.join(' ')}; allowed: --spec FILE --out DIR")
    end
    spec = read_spec(arguments[1][1], settings, lines)
    missing = needed(spec) - capabilities - roles.keys.map { |role| "role #{role}" }
    lines.fail(3, nil, "not in this cell: #{missing.join(', ')}") if missing.any?
    encoding = spec['payload.encoding']
    limits = BYTES_MIN[encoding]..bytes_max.fetch(encoding, 2**26)
    unless limits.cover?(spec['payload.bytes']) || !spec['payload.literal'].empty?
      lines.fail(3, nil, "payload.bytes: found #{spec['payload.bytes']}; allowed: #{limits}")
    end
    lines.listen
    kit = Kit.new(spec, lines)
    roles[spec['role']].call(kit)
    kit.finish(arguments[0][1])
    $stdout.flush
    exit!(0) # a library's exit handlers must not hold the process past the contract's second
  rescue Exception => error
    warn error.full_message(highlight: false)
    lines.fail(4, nil, "#{error.class}: #{error.message}")
  end
end
