//! The content of recorded files: from packets and messages to bytes.

mod mjr;
mod opus;
mod timeline;

use std::time::SystemTime;

use portunus_files::mjr::{MjrError, UnixMicros};
use portunus_media::Tapped;
use portunus_sdp::CodecName;

use crate::{Format, RecordError, RecordingSpec};
use mjr::MjrContent;
use opus::OpusContent;

/// The content of a file that is being written.
#[derive(Debug)]
pub(crate) enum Content {
    Mjr(Box<MjrContent>),
    OggOpus(Box<OpusContent>),
}

/// The counts of packets and messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Put {
    pub(crate) written: u64,
    /// Frames that do not fit the format, or came too late for it.
    pub(crate) left_out: u64,
}

impl Put {
    fn of(written: Result<(), MjrError>) -> Self {
        let is_written = written.is_ok();
        Self {
            written: u64::from(is_written),
            left_out: u64::from(!is_written),
        }
    }
}

impl Content {
    /// Writes the start of the file into the buffer. Fails if the format does not fit the codec.
    pub(crate) fn begin(spec: &RecordingSpec, buffer: &mut Vec<u8>) -> Result<Self, RecordError> {
        let unfit = || RecordError::Unfit {
            name: spec.name.clone(),
            format: spec.format.extension(),
        };
        match spec.format {
            Format::Mjr => Ok(Content::Mjr(Box::new(MjrContent::begin(
                &spec.media,
                buffer,
            )))),
            Format::WebM | Format::Matroska | Format::Mp4 => Err(unfit()),
            Format::OggOpus if !spec.media.is_plain(CodecName::Opus) => Err(unfit()),
            Format::OggOpus => {
                let serial = UnixMicros::from(SystemTime::now()).0 as u32;
                let opus = OpusContent::begin(&spec.media, serial).map_err(|_| unfit())?;
                let mut content = Content::OggOpus(Box::new(opus));
                content.hand_over(buffer);
                Ok(content)
            }
        }
    }

    /// Appends a packet or message to `buffer`, if it belongs into the file. Earlier ones may
    /// follow that waited for it.
    pub(crate) fn put(&mut self, tapped: &Tapped, buffer: &mut Vec<u8>) -> Put {
        let put = match (&mut *self, tapped) {
            (Content::Mjr(mjr), Tapped::Packet(packet)) => mjr.put_packet(packet, buffer),
            (Content::Mjr(mjr), Tapped::Message(message)) => mjr.put_message(message, buffer),
            (Content::OggOpus(opus), Tapped::Packet(packet)) => opus.put(packet),
            (Content::OggOpus(_), Tapped::Message(_)) | (_, Tapped::Report(_)) => Put::default(),
        };
        self.hand_over(buffer);
        put
    }

    /// Appends the packets that still wait for earlier ones.
    pub(crate) fn end(&mut self, buffer: &mut Vec<u8>) -> Put {
        let put = match self {
            Content::Mjr(_) => Put::default(),
            Content::OggOpus(opus) => opus.end(),
        };
        self.hand_over(buffer);
        put
    }

    /// Appends the end of a complete file.
    pub(crate) fn finish(self, buffer: &mut Vec<u8>) {
        match self {
            Content::Mjr(_) => {}
            Content::OggOpus(opus) => opus.finish(buffer),
        }
    }

    fn hand_over(&mut self, buffer: &mut Vec<u8>) {
        match self {
            Content::Mjr(_) => {}
            Content::OggOpus(opus) => opus.hand_over(buffer),
        }
    }
}
