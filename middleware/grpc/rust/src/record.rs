//! Converts between the kit's record and the interface's record.

use wattwire_kit::{Record, Sample};

use crate::wire;

pub fn to_wire(record: &Record) -> wire::RecordPayload {
    let ([x, y, z], [ox, oy, oz, ow]) = (record.position, record.orientation);
    let sample = |s: &Sample| wire::Sample { id: s.id, state: s.state, value: s.value };
    wire::RecordPayload {
        header: Some(wire::Header { seq: record.seq, send_ns: record.send_ns }),
        name: record.name.clone(),
        pose: Some(wire::Pose {
            position: Some(wire::Position { x, y, z }),
            orientation: Some(wire::Orientation { x: ox, y: oy, z: oz, w: ow }),
        }),
        samples: record.samples.iter().map(sample).collect(),
        trailer: Some(wire::Trailer { seq: record.trailer_seq }),
    }
}

/// Missing fields are zero, as always in protobuf.
pub fn from_wire(message: wire::RecordPayload) -> Record {
    let header = message.header.unwrap_or_default();
    let pose = message.pose.unwrap_or_default();
    let position = pose.position.unwrap_or_default();
    let orientation = pose.orientation.unwrap_or_default();
    let sample = |s: &wire::Sample| Sample { id: s.id, state: s.state, value: s.value };
    Record {
        seq: header.seq,
        send_ns: header.send_ns,
        name: message.name,
        position: [position.x, position.y, position.z],
        orientation: [orientation.x, orientation.y, orientation.z, orientation.w],
        samples: message.samples.iter().map(sample).collect(),
        trailer_seq: message.trailer.unwrap_or_default().seq,
    }
}
