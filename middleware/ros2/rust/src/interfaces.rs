//! The interface types by encoding. On the wire, a type with one field equals its field.

use ros2_client::{Message, MessageTypeName, ServiceTypeName};
use serde::{Deserialize, Serialize};

/// The field of a message, a request or a reply.
pub trait Field: Message + Clone + 'static {
    fn of(payload: &[u8]) -> Self;
    fn payload(&self) -> &[u8];
    fn message_type() -> MessageTypeName;
    fn service_type() -> ServiceTypeName;
}

const OURS: &str = "wattwire_interfaces";

/// `string`
impl Field for String {
    fn of(payload: &[u8]) -> Self {
        String::from_utf8_lossy(payload).into_owned()
    }
    fn payload(&self) -> &[u8] {
        self.as_bytes()
    }
    fn message_type() -> MessageTypeName {
        MessageTypeName::new("std_msgs", "String")
    }
    fn service_type() -> ServiceTypeName {
        ServiceTypeName::new(OURS, "ExchangeText")
    }
}

/// `uint8[]`, which serde copies as a block. It would encode a `Vec<u8>` byte by byte.
#[derive(Clone, Serialize, Deserialize)]
pub struct Bytes {
    #[serde(with = "serde_bytes")]
    data: Vec<u8>,
}

impl Message for Bytes {}

impl Field for Bytes {
    fn of(payload: &[u8]) -> Self {
        Bytes { data: payload.to_vec() }
    }
    fn payload(&self) -> &[u8] {
        &self.data
    }
    fn message_type() -> MessageTypeName {
        MessageTypeName::new(OURS, "Bytes")
    }
    fn service_type() -> ServiceTypeName {
        ServiceTypeName::new(OURS, "ExchangeBytes")
    }
}
