//! Counters of the TURN server.

use std::sync::atomic::{AtomicU64, Ordering};

/// The reason why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TurnRefused {
    /// Wrong credentials (401).
    Credentials,
    /// Expired credentials (401).
    Expired,
    /// An expired nonce (438).
    Nonce,
    /// Sending or relaying to an address outside of this server's media (403).
    Forbidden,
    /// The allocation belongs to another user (441).
    User,
    /// There already is an allocation, or there is none (437).
    Mismatch,
    /// A malformed or unsupported request (400, 420, 440, 442, 443).
    Malformed,
    /// The address has too many allocations (486).
    Quota,
    /// There are too many allocations, or no socket could be opened (508).
    Capacity,
}

impl TurnRefused {
    /// All reasons.
    pub const ALL: [TurnRefused; 9] = [
        TurnRefused::Credentials,
        TurnRefused::Expired,
        TurnRefused::Nonce,
        TurnRefused::Forbidden,
        TurnRefused::User,
        TurnRefused::Mismatch,
        TurnRefused::Malformed,
        TurnRefused::Quota,
        TurnRefused::Capacity,
    ];

    /// Returns the name for metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            TurnRefused::Credentials => "credentials",
            TurnRefused::Expired => "expired",
            TurnRefused::Nonce => "nonce",
            TurnRefused::Forbidden => "forbidden",
            TurnRefused::User => "user",
            TurnRefused::Mismatch => "mismatch",
            TurnRefused::Malformed => "malformed",
            TurnRefused::Quota => "quota",
            TurnRefused::Capacity => "capacity",
        }
    }
}

/// The reason why the server closed a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TurnClosed {
    /// There were too many, of its address or in all.
    Limit,
    /// The TLS handshake failed.
    Tls,
    /// The TLS handshake took too long.
    Handshake,
    /// It had no allocation for too long.
    Idle,
    /// It did not read its data.
    Slow,
    /// It did not speak TURN.
    Malformed,
}

impl TurnClosed {
    /// All reasons.
    pub const ALL: [TurnClosed; 6] = [
        TurnClosed::Limit,
        TurnClosed::Tls,
        TurnClosed::Handshake,
        TurnClosed::Idle,
        TurnClosed::Slow,
        TurnClosed::Malformed,
    ];

    /// Returns the name for metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            TurnClosed::Limit => "limit",
            TurnClosed::Tls => "tls",
            TurnClosed::Handshake => "handshake",
            TurnClosed::Idle => "idle",
            TurnClosed::Slow => "slow",
            TurnClosed::Malformed => "malformed",
        }
    }
}

/// Totals of the TURN server since its start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TurnTotals {
    /// Current allocations.
    pub allocations: u64,
    /// Current TCP and TLS connections, including handshakes.
    pub connections: u64,
    /// Allocations made.
    pub allocated: u64,
    /// TCP and TLS connections accepted, including those that were closed at once.
    pub accepted: u64,
    /// Datagrams relayed from clients to media.
    pub to_media: u64,
    /// The bytes of these.
    pub to_media_bytes: u64,
    /// Datagrams relayed from media to clients.
    pub to_clients: u64,
    /// The bytes of these.
    pub to_clients_bytes: u64,
    /// Datagrams dropped because a client or a socket did not accept them.
    pub dropped: u64,
    /// Datagrams of clients without a permission or a channel, and of peers outside of media.
    pub unwanted: u64,
    /// Datagrams that are not TURN.
    pub garbage: u64,
    /// Requests without valid credentials that were not answered because their address had too
    /// many.
    pub unanswered: u64,
    /// Refused requests by reason.
    pub refused: [u64; TurnRefused::ALL.len()],
    /// Connections that the server closed by reason.
    pub closed: [u64; TurnClosed::ALL.len()],
}

/// The counters behind the totals.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) allocations: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) allocated: AtomicU64,
    pub(crate) accepted: AtomicU64,
    pub(crate) to_media: AtomicU64,
    pub(crate) to_media_bytes: AtomicU64,
    pub(crate) to_clients: AtomicU64,
    pub(crate) to_clients_bytes: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) unwanted: AtomicU64,
    pub(crate) garbage: AtomicU64,
    pub(crate) unanswered: AtomicU64,
    refused: [AtomicU64; TurnRefused::ALL.len()],
    closed: [AtomicU64; TurnClosed::ALL.len()],
}

impl Counters {
    pub(crate) fn refused(&self, why: TurnRefused) {
        if let Some(counter) = self.refused.get(why as usize) {
            count(counter);
        }
    }

    pub(crate) fn closed(&self, why: TurnClosed) {
        if let Some(counter) = self.closed.get(why as usize) {
            count(counter);
        }
    }

    pub(crate) fn relayed_to_media(&self, bytes: usize) {
        count(&self.to_media);
        self.to_media_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn relayed_to_client(&self, bytes: usize) {
        count(&self.to_clients);
        self.to_clients_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn totals(&self) -> TurnTotals {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TurnTotals {
            allocations: read(&self.allocations),
            connections: read(&self.connections),
            allocated: read(&self.allocated),
            accepted: read(&self.accepted),
            to_media: read(&self.to_media),
            to_media_bytes: read(&self.to_media_bytes),
            to_clients: read(&self.to_clients),
            to_clients_bytes: read(&self.to_clients_bytes),
            dropped: read(&self.dropped),
            unwanted: read(&self.unwanted),
            garbage: read(&self.garbage),
            unanswered: read(&self.unanswered),
            refused: self.refused.each_ref().map(read),
            closed: self.closed.each_ref().map(read),
        }
    }
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn uncount(counter: &AtomicU64) {
    counter.fetch_sub(1, Ordering::Relaxed);
}
