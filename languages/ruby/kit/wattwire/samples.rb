# frozen_string_literal: true

module Wattwire
  # Records in memory during the window, and their file after it (C-24 to C-26).
  class Samples
    def initialize(capacity)
      @capacity_bytes = RECORD_BYTES * capacity
      @records = "\0".b * @capacity_bytes # written once, so that the window has no page fault
      @added = 0
      @lock = Mutex.new
    end

    def recorded = [@added, @capacity_bytes / RECORD_BYTES].min
    def overflow = @added - recorded

    # Adds a record if there is room (C-26); safe in several threads.
    def add(seq, intended_ns, begin_ns, end_ns, bytes, peer, kind, flags)
      record = [seq, intended_ns, begin_ns, end_ns, bytes, peer, kind, flags].pack(RECORD_FORMAT)
      @lock.synchronize do
        place = RECORD_BYTES * @added
        @records[place, RECORD_BYTES] = record if place < @capacity_bytes
        @added += 1
      end
    end

    def write(path, role, node, seed)
      header = [FILE_MAGIC, FILE_VERSION, HEADER_BYTES, RECORD_BYTES, ROLES[role], FILE_CLOCK,
                node, 0, 0, recorded, overflow, seed].pack(HEADER_FORMAT)
      File.binwrite(path, header + @records[0, RECORD_BYTES * recorded])
    end
  end
end
