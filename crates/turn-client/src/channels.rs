//! The channels of an allocation (RFC 8656 section 12): a number for each address of a peer, with a
//! permission for it.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The first number, and the count of numbers.
const FIRST: u16 = 0x4000;
const MOST: usize = 0x1000;

/// The interval at which an active channel is bound again: the permission lasts for 5 minutes.
const REBIND: Duration = Duration::from_secs(240);
/// The time for which a number stays with its address after the last binding: 10 minutes as a
/// channel, and 5 more before reuse.
const QUARANTINE: Duration = Duration::from_secs(900);
/// The time for which a refused peer is not requested again.
const REFUSAL: Duration = Duration::from_secs(60);

/// A channel of one allocation, for its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channel {
    pub(crate) allocation: u16,
    pub(crate) number: u16,
}

/// The way of a datagram to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Envelope {
    /// ChannelData with this number.
    ChannelData(u16),
    /// An indication, see [`crate::Client::indication`], since the server has not confirmed the
    /// channel yet.
    Indication(SocketAddr),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The server has not answered yet.
    Pending,
    Bound,
    /// The server refused to relay to this peer.
    Refused(Instant),
    /// It must not be reused before this time.
    Unused(Instant),
}

#[derive(Debug)]
struct Entry {
    peer: SocketAddr,
    state: State,
    /// When the channel was last requested.
    asked: Instant,
    /// Whether it was used since then.
    is_used: bool,
    /// Whether it has to be bound again soon.
    is_overdue: bool,
}

/// The channels by number and by address.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    entries: Vec<Entry>,
    by_peer: HashMap<SocketAddr, u16>,
    /// Used numbers that are free again.
    free: VecDeque<u16>,
}

impl Channels {
    /// Returns the number for a peer, and whether to request it from the server. Returns `None` if
    /// the server refused the peer, or no number is free.
    pub(crate) fn open(&mut self, peer: SocketAddr, now: Instant) -> Option<(u16, bool)> {
        if let Some(number) = self.by_peer.get(&peer).copied() {
            let entry = self.entry(number)?;
            return match entry.state {
                State::Refused(until) if now >= until => {
                    (entry.state, entry.asked) = (State::Pending, now);
                    Some((number, true))
                }
                State::Refused(_) => None,
                _ => Some((number, false)),
            };
        }
        let entry = Entry {
            peer,
            state: State::Pending,
            asked: now,
            is_used: true,
            is_overdue: false,
        };
        let number = match self.free.pop_front() {
            Some(number) => {
                *self.entry(number)? = entry;
                number
            }
            None if self.entries.len() < MOST => {
                let number = FIRST.checked_add(u16::try_from(self.entries.len()).ok()?)?;
                self.entries.push(entry);
                number
            }
            None => return None,
        };
        self.by_peer.insert(peer, number);
        Some((number, true))
    }

    /// Returns whether a peer has a number.
    pub(crate) fn knows(&self, peer: SocketAddr) -> bool {
        self.by_peer.contains_key(&peer)
    }

    /// Returns the way of a datagram on this channel, or `None` if it has no peer.
    #[inline]
    pub(crate) fn envelope(&mut self, number: u16) -> Option<Envelope> {
        let entry = self.entry(number)?;
        entry.is_used = true;
        match entry.state {
            State::Bound => Some(Envelope::ChannelData(number)),
            State::Pending => Some(Envelope::Indication(entry.peer)),
            State::Refused(_) | State::Unused(_) => None,
        }
    }

    /// Returns the peer of this channel.
    #[inline]
    pub(crate) fn peer(&self, number: u16) -> Option<SocketAddr> {
        let entry = self.entries.get(index(number)?)?;
        // Data may overtake the server's response.
        matches!(entry.state, State::Bound | State::Pending).then_some(entry.peer)
    }

    /// Marks a channel as bound.
    pub(crate) fn bound(&mut self, number: u16) {
        if let Some(entry) = self.entry(number) {
            entry.state = State::Bound;
        }
    }

    /// Marks a channel as refused by the server.
    pub(crate) fn refused(&mut self, number: u16, now: Instant) {
        if let Some(entry) = self.entry(number) {
            entry.state = State::Refused(now + REFUSAL);
        }
    }

    /// Takes note of a missing answer, which does not end a channel that was bound before.
    pub(crate) fn unanswered(&mut self, number: u16, now: Instant) {
        if let Some(entry) = self.entry(number) {
            match entry.state {
                State::Bound => entry.is_overdue = true,
                _ => entry.state = State::Refused(now),
            }
        }
    }

    /// Returns active channels to bind again, up to `most`, and frees the numbers of others.
    pub(crate) fn sweep(&mut self, now: Instant, most: usize) -> Vec<(u16, SocketAddr)> {
        let mut due = Vec::new();
        for (number, entry) in (FIRST..).zip(&mut self.entries) {
            let since = now.saturating_duration_since(entry.asked);
            let is_due = entry.is_overdue || since >= REBIND && entry.is_used;
            match entry.state {
                State::Bound if is_due && due.len() >= most => {}
                State::Bound if is_due => {
                    (entry.asked, entry.is_used, entry.is_overdue) = (now, false, false);
                    due.push((number, entry.peer));
                }
                State::Bound | State::Refused(_) if since >= REBIND => {
                    self.by_peer.remove(&entry.peer);
                    entry.state = State::Unused(entry.asked + QUARANTINE);
                }
                State::Unused(until) if now >= until && !self.free.contains(&number) => {
                    self.free.push_back(number);
                }
                _ => {}
            }
        }
        due
    }

    /// Returns the number of peers with a channel.
    pub(crate) fn len(&self) -> usize {
        self.by_peer.len()
    }

    fn entry(&mut self, number: u16) -> Option<&mut Entry> {
        self.entries.get_mut(index(number)?)
    }
}

fn index(number: u16) -> Option<usize> {
    number.checked_sub(FIRST).map(usize::from)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn peer(n: u32) -> SocketAddr {
        let [_, a, b, c] = n.to_be_bytes();
        SocketAddr::from(([10, a, b, c], 5_000))
    }

    #[test]
    fn numbers_are_bounded_and_free_again_after_a_quarantine() {
        let mut now = Instant::now();
        let mut channels = Channels::default();
        for n in 0..MOST as u32 {
            let (number, is_new) = channels.open(peer(n), now).unwrap();
            assert_eq!((u32::from(number), is_new), (0x4000 + n, true));
            channels.bound(number);
        }
        assert_eq!(channels.open(peer(1_000_000), now), None);
        // Active channels are bound again, some at a time.
        now += REBIND;
        let kept = channels.open(peer(7), now).unwrap();
        assert_eq!(kept, (0x4007, false));
        let due = channels.sweep(now, 100);
        assert_eq!(due.len(), 100);
        assert_eq!(channels.sweep(now, MOST).len(), MOST - 100);
        now += REBIND;
        assert_eq!(
            channels.envelope(0x4007),
            Some(Envelope::ChannelData(0x4007))
        );
        assert_eq!(channels.sweep(now, MOST), [(0x4007, peer(7))]);
        assert_eq!(channels.len(), 1);
        assert_eq!(channels.envelope(0x4008), None);
        assert_eq!(channels.peer(0x4008), None);
        assert_eq!(channels.open(peer(8), now), None, "in quarantine");
        now += QUARANTINE;
        channels.sweep(now, MOST);
        assert_eq!(channels.open(peer(8), now), Some((0x4000, true)));
    }

    #[test]
    fn a_peer_that_is_refused_is_asked_for_again_later() {
        let now = Instant::now();
        let mut channels = Channels::default();
        let (number, _) = channels.open(peer(1), now).unwrap();
        assert_eq!(
            channels.envelope(number),
            Some(Envelope::Indication(peer(1)))
        );
        assert_eq!(channels.peer(number), Some(peer(1)));
        channels.refused(number, now);
        assert_eq!(channels.envelope(number), None);
        assert_eq!(channels.open(peer(1), now), None);
        assert_eq!(channels.open(peer(1), now + REFUSAL), Some((number, true)));
        assert_eq!(channels.envelope(0x3FFF), None);
        assert_eq!(channels.envelope(0x7FFF), None);
    }
}
