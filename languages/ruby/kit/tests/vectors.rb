# frozen_string_literal: true

# Answers questions about the kit, a line each, for tests/toolchains/test_kits.py, which has the
# questions. Byte strings are hexadecimal; "-" stands for none.
require 'wattwire'

# Takes the place of the dialogue: a refusal is told by its key, the last line by its fields.
class Told
  attr_reader :fields

  def fail(_code, key, _reason) = throw(:refused, key)

  def line(_keyword, fields) = @fields = fields
end

def specified(encoding, bytes, seed, verify)
  integers = Wattwire::KEYS[Integer].to_h { |key| [key, 0] }
  strings = Wattwire::KEYS[String].to_h { |key| [key, ''] }
  strings.merge(integers).merge(
    'payload.encoding' => encoding, 'payload.bytes' => bytes.to_i, 'verify' => verify,
    'payload.seed' => seed.to_i, 'reply' => 'echo', 'peers.nodes' => [1]
  )
end

def shape(encoding, bytes, seed, node, verify)
  spec = specified(encoding, bytes, seed, verify)
  (encoding == 'record' ? Wattwire::Record : Wattwire::Payload).new(spec, [node.to_i])
end

def stamped(made, seq, send_ns)
  message = made.message
  made.stamp(message, 1, 2) # a buffer is reused: what stood before must not shine through
  made.stamp(message, seq.to_i, send_ns.to_i)
  message
end

def verdict(made, message)
  verdict, seq, = made.check(message)
  names = { Wattwire::OK => 'ok', Wattwire::CORRUPT => 'corrupt', Wattwire::FOREIGN => 'foreign' }
  "#{names.fetch(verdict)} #{seq || '-'}"
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
    stamped(shape(encoding, bytes, seed, 0, 'full'), seq, send_ns).unpack1('H*')
  end,
  'check' => lambda do |seed, encoding, bytes, node, verify, hex|
    verdict(shape(encoding, bytes, seed, node, verify), bytes_of(hex))
  end,
  'record' => lambda do |seed, seq, send_ns, bytes|
    JSON.generate(stamped(shape('record', bytes, seed, 0, 'full'), seq, send_ns))
  end,
  'check-record' => lambda do |seed, bytes, node, verify, hex|
    verdict(shape('record', bytes, seed, node, verify), record_of(bytes_of(hex)))
  end,
  'samples' => lambda do |path, role, node, seed, capacity, *numbers|
    spec = specified('bytes', 16, seed, 'full')
    spec.update('role' => Wattwire::Kit::ROLES[role.to_i], 'node' => node.to_i,
                'record.capacity' => capacity.to_i)
    told = Told.new
    kit = Wattwire::Kit.new(spec, told)
    numbers.map(&:to_i).each_slice(8) { |record| kit.add(*record) }
    kit.finish(File.dirname(path))
    told.fields.values_at(:recorded, :overflow).join(' ')
  end,
  'spec' => lambda do |path|
    catch(:refused) do
      Wattwire.read_spec(path, {}, Told.new)
      'ok'
    end
  end
}.freeze

$stdin.each_line do |line|
  question, *given = line.split
  puts ANSWERS.fetch(question).call(*given)
end
