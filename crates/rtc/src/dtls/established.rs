//! DTLS after the handshake: application data and alerts.

use std::fmt;
use std::time::{Duration, Instant};

use super::ContentType;
use super::record::{Record, RecordOpener, RecordSealer};

/// The least interval and the most repetitions of the last flight: enough for any loss, too few to
/// be of use to somebody who forges a peer's repetitions.
const MIN_REPEAT: Duration = Duration::from_millis(20);
const MAX_REPEATS: u8 = 40;

const CLOSE_NOTIFY: u8 = 0;
const WARNING: u8 = 1;
const FATAL: u8 = 2;

/// An established DTLS association.
pub(crate) struct Established {
    sealer: RecordSealer,
    opener: RecordOpener,
    /// The server's last flight, which the peer may still lack.
    last_flight: Vec<Vec<u8>>,
    repeats: u8,
    last_repeat: Option<Instant>,
}

/// The effect of a datagram.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// The peer ended the association by `close_notify`, or by a fatal alert with this code.
    Closed(Option<u8>),
    /// The association continues.
    Open {
        /// Whether at least one of its records was authentic or a known repetition.
        accepted: bool,
    },
}

impl Established {
    pub(super) fn new(
        sealer: RecordSealer,
        opener: RecordOpener,
        last_flight: Vec<Vec<u8>>,
    ) -> Self {
        Self {
            sealer,
            opener,
            last_flight,
            repeats: 0,
            last_repeat: None,
        }
    }

    /// Opens a datagram's records in place and passes application data to `deliver`. Appends
    /// datagrams to send to `out`.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        datagram: &mut [u8],
        out: &mut Vec<Vec<u8>>,
        mut deliver: impl FnMut(&[u8]),
    ) -> Incoming {
        let mut accepted = false;
        let mut rest = datagram;
        while let Some((record, tail)) = Record::split(rest) {
            let Record { header, bytes } = record;
            rest = tail;
            match header.content {
                // A repeated Finished of the peer shows that it did not get our last flight. The
                // other messages of its flight come in plain text and need no answer.
                ContentType::Handshake if header.epoch == 1 => {
                    accepted |= self.repeat_last_flight(now, out);
                }
                ContentType::Handshake | ContentType::ChangeCipherSpec => {}
                ContentType::ApplicationData => {
                    if let Some(data) = self.opener.open(header, bytes) {
                        accepted = true;
                        deliver(data);
                    }
                }
                ContentType::Alert => match self.opener.open(header, bytes) {
                    Some([_, CLOSE_NOTIFY]) => return Incoming::Closed(None),
                    Some([FATAL, code]) => return Incoming::Closed(Some(*code)),
                    Some(_) => accepted = true,
                    None => {}
                },
            }
        }
        Incoming::Open { accepted }
    }

    /// Makes a datagram of application data. Returns `None` if the data is too long for one.
    pub(crate) fn seal(&mut self, data: &[u8]) -> Option<Vec<u8>> {
        self.sealer.seal(ContentType::ApplicationData, data)
    }

    /// Makes the datagram that ends the association.
    pub(crate) fn close(&mut self) -> Option<Vec<u8>> {
        self.sealer
            .seal(ContentType::Alert, &[WARNING, CLOSE_NOTIFY])
    }

    fn repeat_last_flight(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) -> bool {
        let too_soon = self.last_repeat.is_some_and(|last| now < last + MIN_REPEAT);
        if self.last_flight.is_empty() || too_soon || self.repeats >= MAX_REPEATS {
            return false;
        }
        self.repeats += 1;
        self.last_repeat = Some(now);
        out.extend(self.last_flight.iter().cloned());
        true
    }
}

impl fmt::Debug for Established {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Established")
            .field("repeats", &self.repeats)
            .finish_non_exhaustive()
    }
}
