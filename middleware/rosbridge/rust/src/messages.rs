//! Messages of std_msgs and of the bridge's service, in the form that roslibrust generates.

use roslibrust::codegen::serde_rosmsg_bytes;
use roslibrust::{MessageDescriptor, RosMessageType, RosServiceType};
use serde::{Deserialize, Serialize};
use wattwire_kit::Message;

/// Over rosbridge, only the name of a type is sent. Native nodes would also need the other parts.
const fn described<T: RosMessageType>(name: &'static str) -> MessageDescriptor {
    MessageDescriptor::new::<T>(name, "", "", "", &[0; 32])
}

/// A message type whose data is the payload.
pub trait Payload: RosMessageType {
    fn from_payload(payload: Message) -> Self;
    fn payload(&self) -> &[u8];
}

/// std_msgs/String
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Text {
    data: String,
}

impl RosMessageType for Text {
    const DESCRIPTION: MessageDescriptor = described::<Self>("std_msgs/String");
}

impl Payload for Text {
    fn from_payload(payload: Message) -> Self {
        Text { data: String::from_utf8_lossy(payload.bytes()).into_owned() }
    }
    fn payload(&self) -> &[u8] {
        self.data.as_bytes()
    }
}

/// std_msgs/MultiArrayDimension
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Dimension {
    label: String,
    size: u32,
    stride: u32,
}

/// std_msgs/MultiArrayLayout
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Layout {
    dim: Vec<Dimension>,
    data_offset: u32,
}

/// std_msgs/UInt8MultiArray
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct ByteArray {
    layout: Layout,
    #[serde(with = "serde_rosmsg_bytes")]
    data: Vec<u8>,
}

impl RosMessageType for ByteArray {
    const DESCRIPTION: MessageDescriptor = described::<Self>("std_msgs/UInt8MultiArray");
}

impl Payload for ByteArray {
    fn from_payload(payload: Message) -> Self {
        ByteArray { layout: Layout::default(), data: payload.bytes().to_vec() }
    }
    fn payload(&self) -> &[u8] {
        &self.data
    }
}

/// The bridge's service, which answers when a topic of this client has another end.
pub struct AwaitConnection;

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct AwaitConnectionRequest {
    pub topic: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct AwaitConnectionResponse {
    pub connected: bool,
}

impl RosMessageType for AwaitConnectionRequest {
    const DESCRIPTION: MessageDescriptor = described::<Self>("rosbridge/AwaitConnectionRequest");
}

impl RosMessageType for AwaitConnectionResponse {
    const DESCRIPTION: MessageDescriptor = described::<Self>("rosbridge/AwaitConnectionResponse");
}

impl RosServiceType for AwaitConnection {
    const ROS_SERVICE_NAME: &'static str = "rosbridge/AwaitConnection";
    type Request = AwaitConnectionRequest;
    type Response = AwaitConnectionResponse;
}
