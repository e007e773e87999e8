# frozen_string_literal: true

require 'wattwire_pb' # its package has the name of the kit's module; no class has the same name

# Conversion between the kit's messages and protobuf's.
module Messages
  # The procedure of the run's encoding, and the conversions from the kit to the wire and back.
  Shape = Struct.new(:procedure, :to_wire, :from_wire)

  def self.shape(spec)
    case spec.payload_literal.empty? ? spec.payload_encoding : 'text'
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

  # A field that the sender omitted is zero, as protobuf defines.
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
