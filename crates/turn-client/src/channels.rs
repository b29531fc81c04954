//! The channels of an allocation (RFC 8656 section 12): a number for each address of a peer, which is a permission for it
//! too.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The first number, and how many there are.
const FIRST: u16 = 0x4000;
const MOST: usize = 0x1000;

/// How long after it was bound a channel that is in use is bound again: the permission lasts for 5 minutes.
const REBIND: Duration = Duration::from_secs(240);
/// How long a number stays with its address after it was bound last: 10 minutes as a channel, and 5 more in which it must
/// not become that of another.
const QUARANTINE: Duration = Duration::from_secs(900);
/// How long a peer that the server refuses is not asked for again.
const REFUSAL: Duration = Duration::from_secs(60);

/// A channel of one allocation, as its user remembers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channel {
    pub(crate) allocation: u16,
    pub(crate) number: u16,
}

/// How a datagram gets to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Envelope {
    /// Behind the head of ChannelData: this number, and its length.
    ChannelData(u16),
    /// In an indication, see [`crate::Client::indication`]: the server has not confirmed the channel yet.
    Indication(SocketAddr),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The server was asked, and has not answered.
    Pending,
    Bound,
    /// The server does not relay to this peer.
    Refused(Instant),
    /// It is nobody's until then.
    Unused(Instant),
}

#[derive(Debug)]
struct Entry {
    peer: SocketAddr,
    state: State,
    /// When the server was last asked.
    asked: Instant,
    /// Something was sent by it since then.
    is_used: bool,
    /// It is to be bound again soon.
    is_overdue: bool,
}

/// The channels by number and by address.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    entries: Vec<Entry>,
    by_peer: HashMap<SocketAddr, u16>,
    /// Numbers that were used before, and are free again.
    free: VecDeque<u16>,
}

impl Channels {
    /// The number for a peer, and whether the server is to be asked for it. `None` if it refuses the peer, or there is no
    /// number left.
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

    /// Whether a peer has a number.
    pub(crate) fn knows(&self, peer: SocketAddr) -> bool {
        self.by_peer.contains_key(&peer)
    }

    /// How a datagram is sent by this number. `None` if it is that of no peer.
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

    /// Whose datagrams come by this number.
    #[inline]
    pub(crate) fn peer(&self, number: u16) -> Option<SocketAddr> {
        let entry = self.entries.get(index(number)?)?;
        // The response of the server may be overtaken.
        matches!(entry.state, State::Bound | State::Pending).then_some(entry.peer)
    }

    /// The server has bound a channel.
    pub(crate) fn bound(&mut self, number: u16) {
        if let Some(entry) = self.entry(number) {
            entry.state = State::Bound;
        }
    }

    /// The server does not bind a channel.
    pub(crate) fn refused(&mut self, number: u16, now: Instant) {
        if let Some(entry) = self.entry(number) {
            entry.state = State::Refused(now + REFUSAL);
        }
    }

    /// The server has not answered, which does not end a channel that was bound before.
    pub(crate) fn unanswered(&mut self, number: u16, now: Instant) {
        if let Some(entry) = self.entry(number) {
            match entry.state {
                State::Bound => entry.is_overdue = true,
                _ => entry.state = State::Refused(now),
            }
        }
    }

    /// Has channels in use bound again, up to `most`, and takes numbers from those that are not.
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

    /// How many peers have one.
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
    #![allow(clippy::unwrap_used)]
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
        // What is used is bound again, some at a time.
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
