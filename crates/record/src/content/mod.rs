//! What is in a recording's file: from packets and messages to bytes.

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

/// The content of a file in the making.
#[derive(Debug)]
pub(crate) enum Content {
    Mjr(Box<MjrContent>),
    OggOpus(Box<OpusContent>),
}

/// What became of packets and messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Put {
    pub(crate) written: u64,
    /// What the format has no room for, or what came too late for it.
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
    /// Begins with what the file begins with; an error if the format is not one for what is recorded.
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
                let begun = OpusContent::begin(&spec.media, serial).map_err(|_| unfit())?;
                let mut content = Content::OggOpus(Box::new(begun));
                content.hand_over(buffer);
                Ok(content)
            }
        }
    }

    /// Puts what came behind what is in `buffer`, as far as it belongs into the file and its turn has come.
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

    /// Puts what was kept back, now that nothing more comes.
    pub(crate) fn end(&mut self, buffer: &mut Vec<u8>) -> Put {
        let put = match self {
            Content::Mjr(_) => Put::default(),
            Content::OggOpus(opus) => opus.end(),
        };
        self.hand_over(buffer);
        put
    }

    /// Puts what a complete file ends with.
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
