//! DTLS after the handshake: application data and alerts.

use std::fmt;
use std::time::{Duration, Instant};

use super::ContentType;
use super::record::{RecordOpener, RecordSealer, split};

/// The last flight is sent again at most this often, and this many times in all: enough for any
/// loss, too little to be of use to someone who forges a peer's repetitions.
const MIN_REPEAT: Duration = Duration::from_millis(20);
const MAX_REPEATS: u8 = 40;

const CLOSE_NOTIFY: u8 = 0;
const WARNING: u8 = 1;
const FATAL: u8 = 2;

/// An established DTLS association.
pub(crate) struct Established {
    sealer: RecordSealer,
    opener: RecordOpener,
    /// The server's last flight: the peer may still miss it.
    last_flight: Vec<Vec<u8>>,
    repeats: u8,
    last_repeat: Option<Instant>,
}

/// What a datagram brought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// The peer ended the association: by `close_notify` or by a fatal alert (its code).
    Closed(Option<u8>),
    /// Nothing that ends it.
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

    /// Opens a datagram's records in place and hands application data to `deliver`; what is to be
    /// sent is appended to `out`.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        datagram: &mut [u8],
        out: &mut Vec<Vec<u8>>,
        mut deliver: impl FnMut(&[u8]),
    ) -> Incoming {
        let mut accepted = false;
        let mut rest = datagram;
        while let Some((header, record, tail)) = split(rest) {
            rest = tail;
            match header.content {
                // The peer's Finished again: our last flight did not reach it. In plain text come
                // the other messages of its flight, which need no answer of their own.
                ContentType::Handshake if header.epoch == 1 => {
                    accepted |= self.repeat_last_flight(now, out);
                }
                ContentType::Handshake | ContentType::ChangeCipherSpec => {}
                ContentType::ApplicationData => {
                    if let Some(data) = self.opener.open(header, record) {
                        accepted = true;
                        deliver(data);
                    }
                }
                ContentType::Alert => match self.opener.open(header, record) {
                    Some([_, CLOSE_NOTIFY]) => return Incoming::Closed(None),
                    Some([FATAL, code]) => return Incoming::Closed(Some(*code)),
                    Some(_) => accepted = true,
                    None => {}
                },
            }
        }
        Incoming::Open { accepted }
    }

    /// Makes a datagram of application data; none if it is too long for one.
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
