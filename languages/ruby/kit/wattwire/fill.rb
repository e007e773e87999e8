# frozen_string_literal: true

module Wattwire
  # The fill of payloads and records (C-19, C-20).
  module Fill
    MASK = (2**64) - 1
    BYTES = "\x00-\xFF".b.freeze
    CHARACTERS = ('A-Za-z0-9\-_' * 4).freeze

    # Returns the first `count` bytes of splitmix64, in little-endian words.
    def self.bytes(seed, count)
      words = Array.new((count + 7) / 8) do
        seed = (seed + 0x9E3779B97F4A7C15) & MASK
        z = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^ (z >> 31)
      end
      words.pack('Q<*')[0, count]
    end

    # Returns a character for each byte.
    def self.text(bytes) = bytes.tr(BYTES, CHARACTERS)
  end
end
