//! Frames as bytes.

use std::io;

use bytes::BytesMut;
use rumqttc::mqttbytes::v4::Codec as CodecV4;
use rumqttc::v5::mqttbytes::v5::Codec as CodecV5;
use tokio_util::codec::{Decoder, Encoder};

use super::MqttVersion;
use super::frame::Frame;
use super::{v4, v5};

/// Bytes of the largest packet that is read or written.
pub(super) const MAX_PACKET: usize = 16 << 20;

/// Reads and writes frames in the form of a version.
#[derive(Debug)]
pub(super) enum Codec {
    V4(CodecV4),
    V5(CodecV5),
}

impl Codec {
    pub(super) fn new(version: MqttVersion) -> Self {
        let most = u32::try_from(MAX_PACKET).ok();
        match version {
            MqttVersion::V3 => Codec::V4(CodecV4 {
                max_incoming_size: MAX_PACKET,
                max_outgoing_size: MAX_PACKET,
            }),
            MqttVersion::V5 => Codec::V5(CodecV5 {
                max_incoming_size: most,
                max_outgoing_size: most,
            }),
        }
    }
}

impl Decoder for Codec {
    type Item = Frame;
    type Error = io::Error;

    fn decode(&mut self, bytes: &mut BytesMut) -> io::Result<Option<Frame>> {
        match self {
            Codec::V4(codec) => codec
                .decode(bytes)
                .map(|packet| packet.map(Frame::from))
                .map_err(io::Error::other),
            Codec::V5(codec) => codec
                .decode(bytes)
                .map(|packet| packet.map(Frame::from))
                .map_err(io::Error::other),
        }
    }
}

impl Encoder<Frame> for Codec {
    type Error = io::Error;

    fn encode(&mut self, frame: Frame, bytes: &mut BytesMut) -> io::Result<()> {
        match self {
            Codec::V4(codec) => match v4::packet(frame) {
                Some(packet) => codec.encode(packet, bytes).map_err(io::Error::other),
                None => Ok(()),
            },
            Codec::V5(codec) => match v5::packet(frame) {
                Some(packet) => codec.encode(packet, bytes).map_err(io::Error::other),
                None => Ok(()),
            },
        }
    }
}
