//! The handshake: AWS-LC over an in-memory pipe. Its datagrams are kept, and retransmitted by our
//! clock.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::ssl::{ErrorCode, Ssl, SslRef, SslStream};
use portunus_sdp::negotiated::{DtlsRole, Fingerprint, FingerprintHash};
use portunus_srtp::{Opener, Profile, Sealer};

use super::key_block::Secrets;
use super::randoms::Randoms;
use super::record::{RecordHeader, RecordOpener, RecordSealer, headers};
use super::{ContentType, DtlsError, Established, MTU};

/// The time until the first retransmission of an unanswered flight. It doubles up to
/// [`MAX_RESEND`].
const FIRST_RESEND: Duration = Duration::from_millis(100);
const MAX_RESEND: Duration = Duration::from_secs(1);
/// The longest duration of a handshake.
const GIVE_UP: Duration = Duration::from_secs(20);

/// The most datagrams kept that overtook the end of the handshake.
const MAX_EARLY: usize = 4;

const EXPORTER: &str = "EXTRACTOR-dtls_srtp";

/// A handshake in progress.
pub(crate) struct Handshake {
    stream: SslStream<Pipe>,
    role: DtlsRole,
    fingerprints: Vec<Fingerprint>,
    /// The datagrams of the last flight sent.
    flight: Vec<Vec<u8>>,
    randoms: Randoms,
    /// The first unused sequence number of epoch 1.
    next_sequence: u64,
    /// Application data that arrived before the end of the handshake.
    early: Vec<Vec<u8>>,
    started: Instant,
    resend: Option<(Instant, Duration)>,
}

/// The state of a handshake after a step.
pub(crate) enum Progress {
    /// It continues.
    Pending,
    /// It is complete.
    Done(Box<Done>),
}

/// The result of a handshake.
pub(crate) struct Done {
    pub(crate) established: Established,
    /// `None` if the peer does not speak SRTP because it wants only data channels.
    pub(crate) srtp: Option<(Sealer, Opener)>,
    /// Datagrams that arrived before the end of the handshake.
    pub(crate) early: Vec<Vec<u8>>,
}

impl Handshake {
    /// Starts a handshake. Appends the client's first datagrams to `out`.
    pub(crate) fn start(
        context: &openssl::ssl::SslContextRef,
        role: DtlsRole,
        fingerprints: Vec<Fingerprint>,
        now: Instant,
        out: &mut Vec<Vec<u8>>,
    ) -> Result<Self, DtlsError> {
        let refused = |error: ErrorStack| DtlsError::Handshake(error.to_string());
        let mut ssl = Ssl::new(context).map_err(refused)?;
        ssl.set_mtu(MTU as u32).map_err(refused)?;
        match role {
            DtlsRole::Client => ssl.set_connect_state(),
            DtlsRole::Server => ssl.set_accept_state(),
        }
        let mut handshake = Self {
            stream: SslStream::new(ssl, Pipe::default()).map_err(refused)?,
            role,
            fingerprints,
            flight: Vec::new(),
            randoms: Randoms::default(),
            next_sequence: 0,
            early: Vec::new(),
            started: now,
            resend: None,
        };
        handshake.step(now, out)?;
        Ok(handshake)
    }

    /// Returns the random of its ClientHello, once received.
    pub(super) fn client_random(&self) -> Option<[u8; 32]> {
        self.randoms.client
    }

    /// Returns the same handshake with the deadline of `other`.
    pub(super) fn since(self, other: &Self) -> Self {
        Self {
            started: other.started,
            ..self
        }
    }

    /// Takes a datagram. Appends answers to `out`.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        datagram: &[u8],
        out: &mut Vec<Vec<u8>>,
    ) -> Result<Progress, DtlsError> {
        let first = RecordHeader::parse(datagram).map(|header| header.content);
        if first == Some(ContentType::ApplicationData) {
            if self.early.len() < MAX_EARLY {
                self.early.push(datagram.to_vec());
            }
            return Ok(Progress::Pending);
        }
        self.randoms.observe(datagram);
        self.stream.get_mut().incoming.push_back(datagram.to_vec());
        self.step(now, out)
    }

    /// Returns when [`Self::handle_timeout`] is due.
    pub(crate) fn poll_timeout(&self) -> Instant {
        let give_up = self.started + GIVE_UP;
        self.resend.map_or(give_up, |(at, _)| at.min(give_up))
    }

    /// Retransmits the last flight if it is time, or fails after the deadline.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant,
        out: &mut Vec<Vec<u8>>,
    ) -> Result<(), DtlsError> {
        if now >= self.started + GIVE_UP {
            return Err(DtlsError::Timeout {
                seconds: GIVE_UP.as_secs(),
            });
        }
        let Some((at, delay)) = self.resend else {
            return Ok(());
        };
        if now < at {
            return Ok(());
        }
        // The datagrams keep their numbers, by which the peer drops those it has. It retransmits
        // its own flight by itself.
        out.extend(self.flight.iter().cloned());
        let delay = (delay * 2).min(MAX_RESEND);
        self.resend = Some((now + delay, delay));
        Ok(())
    }

    /// Lets AWS-LC process its input.
    fn step(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) -> Result<Progress, DtlsError> {
        let result = self.stream.do_handshake();
        let sent = std::mem::take(&mut self.stream.get_mut().outgoing);
        if !sent.is_empty() {
            for header in sent.iter().flat_map(|datagram| headers(datagram)) {
                if header.epoch == 1 {
                    self.next_sequence = self.next_sequence.max(header.sequence + 1);
                }
            }
            sent.iter()
                .for_each(|datagram| self.randoms.observe(datagram));
            out.extend(sent.iter().cloned());
            self.flight = sent;
            self.resend = Some((now + FIRST_RESEND, FIRST_RESEND));
        }
        match result {
            Ok(()) => self.finish().map(|done| Progress::Done(Box::new(done))),
            Err(error) if error.code() == ErrorCode::WANT_READ => Ok(Progress::Pending),
            Err(error) => Err(DtlsError::Handshake(error.to_string())),
        }
    }

    /// Checks the peer's certificate and takes the keys from AWS-LC.
    fn finish(&mut self) -> Result<Done, DtlsError> {
        let ssl = self.stream.ssl();
        if !is_vouched_for(ssl, &self.fingerprints) {
            return Err(DtlsError::Fingerprint);
        }
        let secrets = Secrets::of(ssl, &self.randoms).ok_or(DtlsError::Keys)?;
        let keys = secrets.key_block().ok_or(DtlsError::Keys)?;
        let (own, peers) = match self.role {
            DtlsRole::Client => (&keys.client, &keys.server),
            DtlsRole::Server => (&keys.server, &keys.client),
        };
        let sealer = RecordSealer::new(own, self.next_sequence).ok_or(DtlsError::Keys)?;
        let opener = RecordOpener::new(peers).ok_or(DtlsError::Keys)?;
        let srtp = srtp_keys(ssl, self.role)?;
        // The server sends the last flight, and only the client can notice its loss.
        let last_flight = match self.role {
            DtlsRole::Client => Vec::new(),
            DtlsRole::Server => std::mem::take(&mut self.flight),
        };
        Ok(Done {
            established: Established::new(sealer, opener, last_flight),
            srtp,
            early: std::mem::take(&mut self.early),
        })
    }
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handshake")
            .field("role", &self.role)
            .field("state", &self.stream.ssl().state_string_long())
            .field("resend", &self.resend)
            .finish_non_exhaustive()
    }
}

/// Returns whether the peer's certificate has one of the fingerprints. If there are SHA-256 ones,
/// only those count (RFC 8122 section 5: the preferred hash function decides).
fn is_vouched_for(ssl: &SslRef, fingerprints: &[Fingerprint]) -> bool {
    let Some(certificate) = ssl.peer_certificate() else {
        return false;
    };
    let matches = |hash, digest| {
        let Ok(actual) = certificate.digest(digest) else {
            return false;
        };
        fingerprints
            .iter()
            .any(|print| print.hash == hash && *print.digest == *actual)
    };
    if fingerprints
        .iter()
        .any(|print| print.hash == FingerprintHash::Sha256)
    {
        matches(FingerprintHash::Sha256, MessageDigest::sha256())
    } else {
        matches(FingerprintHash::Sha1, MessageDigest::sha1())
    }
}

/// Returns the SRTP keys (RFC 5764 section 4.2).
fn srtp_keys(ssl: &SslRef, role: DtlsRole) -> Result<Option<(Sealer, Opener)>, DtlsError> {
    let Some(selected) = ssl.selected_srtp_profile() else {
        return Ok(None);
    };
    let profile = Profile::from_name(selected.name()).ok_or(DtlsError::Keys)?;
    let (key_len, salt_len) = (profile.key_len(), profile.salt_len());
    let mut material = vec![0; 2 * (key_len + salt_len)];
    ssl.export_keying_material(&mut material, EXPORTER, None)
        .map_err(|_| DtlsError::Keys)?;
    let (keys, salts) = material.split_at(2 * key_len);
    let (client_key, server_key) = keys.split_at(key_len);
    let (client_salt, server_salt) = salts.split_at(salt_len);
    let (own, peers) = match role {
        DtlsRole::Client => ((client_key, client_salt), (server_key, server_salt)),
        DtlsRole::Server => ((server_key, server_salt), (client_key, client_salt)),
    };
    let sealer = Sealer::new(profile, own.0, own.1).map_err(|_| DtlsError::Keys)?;
    let opener = Opener::new(profile, peers.0, peers.1).map_err(|_| DtlsError::Keys)?;
    Ok(Some((sealer, opener)))
}

/// The socket of AWS-LC: whole datagrams in, whole datagrams out.
#[derive(Debug, Default)]
struct Pipe {
    incoming: VecDeque<Vec<u8>>,
    outgoing: Vec<Vec<u8>>,
}

impl Read for Pipe {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let datagram = self.incoming.pop_front().ok_or(io::ErrorKind::WouldBlock)?;
        let len = datagram.len().min(buf.len());
        for (to, from) in buf.iter_mut().zip(&datagram) {
            *to = *from;
        }
        Ok(len)
    }
}

impl Write for Pipe {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.outgoing.push(buf.to_vec());
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
