# frozen_string_literal: true

# Answers questions about the kit, a line each: tests/toolchains/test_kits.py defines the questions.
# Byte strings are hexadecimal; "-" stands for none.
require 'wattwire'

VERDICTS = {
  Wattwire::OK => 'ok', Wattwire::CORRUPT => 'corrupt', Wattwire::FOREIGN => 'foreign'
}.freeze

# The values of a spec whose other keys are empty or zero.
class Given
  def initialize(values)
    @values = values
  end

  def string(key) = @values.fetch(key, '')
  def integer(key) = @values.fetch(key, 0)
  def strings(_key) = []
  def integers(_key) = []
  def settings = {}
  def allowed = {}
end

def messages(encoding, bytes, seed, node, verify)
  values = { 'payload.encoding' => encoding, 'payload.bytes' => bytes.to_i, 'verify' => verify,
             'payload.seed' => seed.to_i, 'reply' => 'echo' }
  Wattwire.messages_of(Wattwire::Spec.new(Given.new(values)), [node.to_i])
end

def stamped(messages, seq, send_ns)
  message = messages.message
  messages.stamp(message, 1, 2) # its bytes must not remain in the reused message
  messages.stamp(message, seq.to_i, send_ns.to_i)
  message
end

def verdict(messages, message)
  verdict, seq, = messages.check(message)
  "#{VERDICTS.fetch(verdict)} #{seq || '-'}"
end

def record_of(text)
  Wattwire::Record.checked(JSON.parse(text, symbolize_names: true))
rescue JSON::ParserError
  Wattwire::Record::UNREADABLE
end

def bytes_of(hex) = [hex.delete('-')].pack('H*')

ANSWERS = {
  'clock' => -> { Wattwire.now },
  'payload' => lambda do |seed, seq, send_ns, encoding, bytes|
    stamped(messages(encoding, bytes, seed, 0, 'full'), seq, send_ns).unpack1('H*')
  end,
  'check' => lambda do |seed, encoding, bytes, node, verify, hex|
    verdict(messages(encoding, bytes, seed, node, verify), bytes_of(hex))
  end,
  'record' => lambda do |seed, seq, send_ns, bytes|
    JSON.generate(stamped(messages('record', bytes, seed, 0, 'full'), seq, send_ns))
  end,
  'check-record' => lambda do |seed, bytes, node, verify, hex|
    verdict(messages('record', bytes, seed, node, verify), record_of(bytes_of(hex)))
  end,
  'samples' => lambda do |path, role, node, seed, capacity, *numbers|
    samples = Wattwire::Samples.new(capacity.to_i)
    numbers.map(&:to_i).each_slice(8) { |record| samples.add(*record) }
    samples.write(path, Wattwire::ROLES.key(role.to_i), node.to_i, seed.to_i)
    "#{samples.recorded} #{samples.overflow}"
  end,
  'spec' => lambda do |path|
    Wattwire::Spec.read(path)
    'ok'
  rescue Wattwire::Refused => error
    error.key
  end
}.freeze

$stdin.each_line do |line|
  question, *arguments = line.split
  puts ANSWERS.fetch(question).call(*arguments)
end
