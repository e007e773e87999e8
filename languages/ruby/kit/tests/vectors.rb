# frozen_string_literal: true

# Answers questions about the kit, a line each, for tests/toolchains/test_kits.py, which has the
# questions. Byte strings are hexadecimal; "-" stands for none.
require 'wattwire'

# Takes the place of the dialogue: a refusal is told by its key.
class Refusals
  def fail(_code, key, _reason) = throw(:refused, key)
end

def shape(encoding, bytes, seed, node, verify)
  spec = { 'payload.encoding' => encoding, 'payload.bytes' => bytes.to_i, 'verify' => verify,
           'payload.seed' => seed.to_i, 'payload.literal' => '', 'reply' => 'echo',
           'reply.literal' => '' }
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
    found = Wattwire::Record.from_json(bytes_of(hex))
    verdict(shape('record', bytes, seed, node, verify), found)
  end,
  'samples' => lambda do |path, role, node, seed, capacity, *numbers|
    recorder = Wattwire::Recorder.new(capacity.to_i)
    numbers.map(&:to_i).each_slice(8) { |record| recorder.add(*record) }
    recorder.write(path, role.to_i, node.to_i, seed.to_i).join(' ')
  end,
  'spec' => lambda do |path|
    catch(:refused) do
      Wattwire.read_spec(path, {}, Refusals.new)
      'ok'
    end
  end
}.freeze

$stdin.each_line do |line|
  question, *given = line.split
  puts ANSWERS.fetch(question).call(*given)
end
