# frozen_string_literal: true

require 'wattwire_pb' # its package is called as the kit's module; they share no name

# The kit's messages as protobuf's, and back.
module Messages
  # The method of the run's encoding, its type, and the two ways between kit and wire.
  Shape = Struct.new(:method, :to_wire, :from_wire)

  def self.shape(spec)
    case spec['payload.literal'].empty? ? spec['payload.encoding'] : 'text'
    when 'bytes'
      wire = ->(message) { Wattwire::BytesPayload.new(data: message) }
      Shape.new(:bytes, wire, :data.to_proc)
    when 'text'
      wire = lambda do |message|
        Wattwire::TextPayload.new(data: message.dup.force_encoding(Encoding::UTF_8))
      end
      Shape.new(:text, wire, ->(payload) { payload.data.b })
    else
      Shape.new(:record, method(:record_to_wire), method(:record_from_wire))
    end
  end

  def self.record_to_wire(record)
    header, trailer = record.values_at(:header, :trailer)
    Wattwire::RecordPayload.new(
      **record, header: header.transform_values(&:to_i), trailer: trailer.transform_values(&:to_i)
    )
  end

  # What a sender left out is zero, as protobuf has it.
  def self.record_from_wire(payload)
    header = payload.header || Wattwire::Header.new
    pose = payload.pose || Wattwire::Pose.new
    { header: { seq: header.seq.to_s, send_ns: header.send_ns.to_s }, name: payload.name,
      pose: { position: (pose.position || Wattwire::Position.new).to_h,
              orientation: (pose.orientation || Wattwire::Orientation.new).to_h },
      samples: payload.samples.map(&:to_h),
      trailer: { seq: payload.trailer.nil? ? '0' : payload.trailer.seq.to_s } }
  end
end
