//! A writer of Ogg Opus files: from packets to bytes.

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use ogg::{PacketWriteEndInfo, PacketWriter};
use thiserror::Error;

use super::gap::Gap;
use super::packet::Toc;
use super::{OpusHead, OpusTags, OpusTime, packet_duration};

/// The longest page.
const PAGE: OpusTime = OpusTime(48_000);

/// The longest gap that is filled. More than a day is an error in the caller's times.
const MAX_GAP: Duration = Duration::from_secs(86_400);

/// The longest packet: 48 frames of 1,275 bytes, and their lengths (RFC 6716 section 3.2).
const MAX_PACKET: usize = 61_298;

/// Writes a file packet by packet. Each page is written by one call of [`Write::write`], or several
/// if a call takes only a part.
///
/// One packet is held back, because the last one must be on a page with an end mark:
/// [`OggOpusWriter::finish`] writes it. Without that, the file still plays.
pub struct OggOpusWriter<W: Write> {
    pages: PacketWriter<'static, Pages<W>>,
    serial: u32,
    /// The start of the next packet.
    next: OpusTime,
    /// The start of the page that is being filled.
    page: OpusTime,
    held: Option<Held>,
    counts: Counts,
}

/// The packet that is held back.
#[derive(Debug)]
struct Held {
    packet: Vec<u8>,
    /// Its end.
    end: OpusTime,
}

/// The result of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placed {
    /// It is in the file, at its time.
    Written,
    /// It is left out, because the file has content at its time already.
    Late,
}

/// The counts of a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Packets that came.
    pub packets: u64,
    /// Packets that came too late.
    pub late: u64,
    /// The length of all gaps.
    pub missing: OpusTime,
}

/// The reason why a packet is not written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OggOpusError {
    /// The bytes cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is not an Opus packet. It is left out; others can follow.
    #[error("no Opus packet (RFC 6716 section 3)")]
    Malformed,
    /// The gap before it is too long. It is left out; others can follow.
    #[error("nothing came for {0:?} before it")]
    Gap(Duration),
}

impl<W: Write> OggOpusWriter<W> {
    /// Starts a file with its two headers. `serial` is a number that no other stream of the file
    /// has.
    pub fn new(out: W, serial: u32, head: &OpusHead, tags: &OpusTags) -> io::Result<Self> {
        let mut pages = PacketWriter::new(Pages::new(out));
        for header in [head.packet(), tags.packet()] {
            pages.write_packet(header, serial, PacketWriteEndInfo::EndPage, 0)?;
            pages.inner_mut().flush()?;
        }
        Ok(Self {
            pages,
            serial,
            next: OpusTime(0),
            page: OpusTime(0),
            held: None,
            counts: Counts::default(),
        })
    }

    /// Writes a packet that starts at `at` on the file's timeline. A decoder conceals the first 400
    /// ms of a gap before it, and the rest is silent.
    pub fn packet(&mut self, at: OpusTime, packet: &[u8]) -> Result<Placed, OggOpusError> {
        let duration = packet_duration(packet).filter(|_| packet.len() <= MAX_PACKET);
        let duration = duration.ok_or(OggOpusError::Malformed)?;
        // A small overlap occurs if timestamps are not those of whole frames.
        if at.plus(OpusTime(duration.0 / 2)) < self.next {
            self.counts.late += 1;
            return Ok(Placed::Late);
        }
        let toc = packet.first().map_or(Toc(0), |toc| Toc(*toc));
        self.fill(at, toc)?;
        self.put(packet.to_vec(), duration)?;
        self.counts.packets += 1;
        Ok(Placed::Written)
    }

    /// Returns the start of the next packet, which is the duration of the file including the
    /// pre-skip.
    pub fn end(&self) -> OpusTime {
        self.next
    }

    /// Returns the counts.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the output.
    pub fn out(&mut self) -> &mut W {
        &mut self.pages.inner_mut().out
    }

    /// Ends the stream, at `until` if the last packet ends before.
    pub fn finish(mut self, until: OpusTime) -> Result<W, OggOpusError> {
        let last = self.held.as_ref().and_then(|held| held.packet.first());
        if let Some(toc) = last.map(|toc| Toc(*toc)) {
            self.fill(until, toc)?;
        }
        self.write_held(PacketWriteEndInfo::EndStream)?;
        Ok(self.pages.into_inner().out)
    }

    /// Fills the time before `until`. `next` is the kind of packet, if there was none before.
    fn fill(&mut self, until: OpusTime, next: Toc) -> Result<(), OggOpusError> {
        let length = until.since(self.next);
        if Duration::from(length) > MAX_GAP {
            return Err(OggOpusError::Gap(length.into()));
        }
        let before = self.held.as_ref().and_then(|held| held.packet.first());
        for (packet, duration) in Gap::new(before.map_or(next, |toc| Toc(*toc)), length) {
            self.put(packet, duration)?;
            self.counts.missing = self.counts.missing.plus(duration);
        }
        Ok(())
    }

    /// Holds a packet back, and writes the one before.
    fn put(&mut self, packet: Vec<u8>, duration: OpusTime) -> io::Result<()> {
        let end = self.next.plus(duration);
        let page_is_full = end.since(self.page) > PAGE;
        self.write_held(match page_is_full {
            true => PacketWriteEndInfo::EndPage,
            false => PacketWriteEndInfo::NormalPacket,
        })?;
        if page_is_full {
            self.page = self.next;
        }
        self.next = end;
        self.held = Some(Held { packet, end });
        Ok(())
    }

    fn write_held(&mut self, ends: PacketWriteEndInfo) -> io::Result<()> {
        if let Some(Held { packet, end }) = self.held.take() {
            self.pages.write_packet(packet, self.serial, ends, end.0)?;
            self.pages.inner_mut().flush()?;
        }
        Ok(())
    }
}

impl<W: Write> fmt::Debug for OggOpusWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OggOpusWriter(until {:?})", self.next)
    }
}

/// Collects the parts of a page, so that only complete pages are written.
struct Pages<W> {
    out: W,
    buffer: Vec<u8>,
}

impl<W: Write> Pages<W> {
    fn new(out: W) -> Self {
        let buffer = Vec::new();
        Self { out, buffer }
    }
}

impl<W: Write> Write for Pages<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    /// Writes the collected page, if there is one.
    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let written = self.out.write_all(&self.buffer);
        self.buffer.clear();
        written
    }
}
