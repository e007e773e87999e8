//! Messages of a cell: bytes, characters or a record, depending on payload.encoding.

use crate::constants::UNKNOWN_NS;
use crate::payload::{Checked, Payload, Shape, Verdict};
use crate::record::{Record, RecordPayload};
use crate::spec::Spec;

/// A borrowed message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Message<'a> {
    /// Bytes, or the characters of a text.
    Bytes(&'a [u8]),
    Record(&'a Record),
    /// An arrival that the cell cannot decode.
    Unreadable,
}

impl<'a> Message<'a> {
    /// Returns the bytes or characters. Panics on a record, which only cells with the capability
    /// encoding.record receive. They copy its fields to the types of their middleware.
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Message::Bytes(bytes) => bytes,
            Message::Unreadable => &[],
            Message::Record(_) => panic!("a record has no bytes"),
        }
    }

    /// Returns false for an arrival that the cell cannot decode.
    pub fn is_readable(self) -> bool {
        !matches!(self, Message::Unreadable)
    }

    /// Returns the length for the sample file (C-25, C-32).
    #[inline]
    pub fn nominal_bytes(self) -> usize {
        match self {
            Message::Bytes(bytes) => bytes.len(),
            Message::Record(record) => record.nominal_bytes(),
            Message::Unreadable => 0,
        }
    }
}

impl<'a> From<&'a [u8]> for Message<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Message::Bytes(bytes)
    }
}
impl<'a> From<&'a Vec<u8>> for Message<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Message::Bytes(bytes)
    }
}
impl<'a> From<&'a str> for Message<'a> {
    fn from(text: &'a str) -> Self {
        Message::Bytes(text.as_bytes())
    }
}
impl<'a> From<&'a Record> for Message<'a> {
    fn from(record: &'a Record) -> Self {
        Message::Record(record)
    }
}

/// An owned message: the sender's buffer, which is rewritten for each message, or a reply.
pub enum Buffer {
    Bytes(Vec<u8>),
    Record(Record),
    /// An arrival that the cell cannot decode. It is never sent.
    Unreadable,
}

impl Buffer {
    #[inline]
    pub fn message(&self) -> Message<'_> {
        match self {
            Buffer::Bytes(bytes) => Message::Bytes(bytes),
            Buffer::Record(record) => Message::Record(record),
            Buffer::Unreadable => Message::Unreadable,
        }
    }
}

/// A reply or a result: the request or a part of it, or a new record.
#[derive(Debug, Clone)]
pub enum Answer<'a> {
    Borrowed(Message<'a>),
    Owned(Record),
}

impl Answer<'_> {
    pub fn message(&self) -> Message<'_> {
        match self {
            Answer::Borrowed(message) => *message,
            Answer::Owned(record) => Message::Record(record),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    Echo,
    Ack,
    Literal,
}

/// The format of a run's messages and replies.
pub(crate) struct Form {
    bytes: Payload,
    record: Option<RecordPayload>,
    reply: Reply,
    reply_literal: String,
    reply_record: Record,
    ack_bytes: usize,
}

impl Form {
    pub fn new(spec: &Spec, nodes: &[i64]) -> Self {
        let encoding = spec.string("payload.encoding");
        let shape = Shape {
            bytes: spec.integer("payload.bytes") as usize,
            text: encoding == "text",
            seed: spec.integer("payload.seed") as u64,
            literal: spec.string("payload.literal").into(),
            full: spec.string("verify") == "full",
        };
        let record = (encoding == "record")
            .then(|| RecordPayload::new(shape.bytes, shape.seed, shape.full, nodes));
        let reply_literal = spec.string("reply.literal").to_owned();
        Form {
            ack_bytes: if shape.text { 16 } else { 8 },
            bytes: Payload::new(shape, nodes),
            record,
            reply: match spec.string("reply") {
                "echo" => Reply::Echo,
                "ack" => Reply::Ack,
                _ => Reply::Literal,
            },
            reply_record: Record::answer(0, 0, 0, &reply_literal),
            reply_literal,
        }
    }

    #[inline]
    pub fn carries_seq(&self) -> bool {
        self.record.is_some() || self.bytes.carries_seq
    }

    #[inline]
    pub fn length(&self) -> usize {
        self.record.as_ref().map_or(self.bytes.length, RecordPayload::length)
    }

    pub fn buffer(&self) -> Buffer {
        match &self.record {
            Some(record) => Buffer::Record(record.buffer()),
            None => Buffer::Bytes(self.bytes.buffer()),
        }
    }

    #[inline]
    pub fn stamp<'b>(&self, buffer: &'b mut Buffer, seq: u64, begin_ns: i64) -> Message<'b> {
        match buffer {
            Buffer::Bytes(bytes) => self.bytes.stamp(bytes, seq, begin_ns),
            Buffer::Record(record) => RecordPayload::stamp(record, seq, begin_ns),
            Buffer::Unreadable => {}
        }
        buffer.message()
    }

    /// Checks an arrival. `expected` is the next counter, by which incomplete sequences are
    /// completed.
    #[inline]
    pub fn check(&self, arrival: Message, expected: &mut u64) -> Checked {
        match (arrival, &self.record) {
            (Message::Bytes(bytes), None) => self.bytes.check(bytes, expected),
            (Message::Record(record), Some(payload)) => payload.check(record),
            _ => Checked { verdict: Verdict::Corrupt, seq: None, begin_ns: UNKNOWN_NS },
        }
    }

    #[inline]
    pub fn answer<'a>(&'a self, request: Message<'a>) -> Answer<'a> {
        let borrowed = |bytes: &'a [u8]| Answer::Borrowed(Message::Bytes(bytes));
        match (self.reply, request) {
            (Reply::Literal, Message::Record(_)) => {
                Answer::Borrowed(Message::Record(&self.reply_record))
            }
            (Reply::Ack, Message::Record(r)) => {
                Answer::Owned(Record::answer(r.seq, r.send_ns, r.trailer_seq, ""))
            }
            (Reply::Ack, Message::Bytes(bytes)) => borrowed(first(bytes, self.ack_bytes)),
            (Reply::Literal, Message::Bytes(_)) => borrowed(self.reply_literal.as_bytes()),
            _ => Answer::Borrowed(request),
        }
    }

    /// Returns whether this may be the reply to the call `seq`; true if it cannot be decided.
    #[inline]
    pub fn may_answer(&self, seq: u64, reply: Message) -> bool {
        match reply {
            _ if !self.carries_seq() || self.reply == Reply::Literal => true,
            Message::Unreadable => true,
            Message::Record(record) => record.seq == seq,
            Message::Bytes(bytes) => self.bytes.carries(bytes, seq),
        }
    }

    /// Returns whether this is the correct reply to the call `seq` (C-23).
    #[inline]
    pub fn is_answer(&self, seq: u64, reply: Message, expected: &mut u64) -> bool {
        if self.reply == Reply::Echo && self.carries_seq() {
            let checked = self.check(reply, expected);
            return checked.verdict == Verdict::Ok && checked.seq == Some(seq);
        }
        match (reply, &self.record) {
            (Message::Record(record), Some(_)) if self.reply == Reply::Literal => {
                *record == self.reply_record
            }
            // Ignores the send time, as for an echo.
            (Message::Record(record), Some(_)) => {
                *record == Record::answer(seq, record.send_ns, seq, "")
            }
            (Message::Bytes(bytes), None) => {
                // A payload without a complete sequence has no send time, so all bytes are known.
                let (header, count) = self.bytes.header(seq);
                let sent = self.bytes.known_bytes(&header[..count]);
                match self.reply {
                    Reply::Echo => bytes == sent,
                    Reply::Ack => bytes == first(sent, self.ack_bytes),
                    Reply::Literal => bytes == self.reply_literal.as_bytes(),
                }
            }
            _ => false,
        }
    }
}

fn first(bytes: &[u8], count: usize) -> &[u8] {
    &bytes[..bytes.len().min(count)]
}
