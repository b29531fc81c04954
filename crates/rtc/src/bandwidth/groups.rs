//! Groups of packets that left together. The difference between arrival and sending intervals of
//! two groups counts (draft-ietf-rmcat-gcc-02 sections 5.1 and 5.2).

use std::time::Duration;

use super::PacketResult;

/// Packets that left within this time are one group.
const BURST: Duration = Duration::from_millis(5);
/// Packets that arrive within this time of each other are one group if they arrive closer than they
/// were sent: a queue emptied at once, which says nothing of its growth.
const ARRIVAL_BURST: Duration = Duration::from_millis(5);
/// The longest time of such a group.
const MAX_BURST: Duration = Duration::from_millis(100);
/// After this many groups that arrived before their predecessor, the past is forgotten.
const MAX_REORDERED: u8 = 3;

/// The difference between two groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupDelta {
    /// The time between the sending of the two.
    pub sent: Duration,
    /// The time between the arrivals of the two.
    pub arrived: Duration,
    /// The arrival of the later one, on the receiver's clock.
    pub at: Duration,
}

/// Joins packets to groups.
#[derive(Debug, Default)]
pub(super) struct Groups {
    before: Option<Group>,
    current: Option<Group>,
    reordered: u8,
}

#[derive(Debug, Clone, Copy)]
struct Group {
    first_sent: Duration,
    last_sent: Duration,
    first_arrival: Duration,
    last_arrival: Duration,
}

impl Groups {
    /// Takes a packet in the order of arrival. Returns the difference between the last two groups
    /// if it starts a new one.
    pub fn push(&mut self, packet: &PacketResult) -> Option<GroupDelta> {
        let (sent, arrival) = (packet.sent, packet.arrival?);
        let Some(current) = &mut self.current else {
            self.current = Some(Group::begin(sent, arrival));
            return None;
        };
        if sent < current.first_sent {
            // It was overtaken on the way and belongs to a closed group.
            return None;
        }
        if current.takes(sent, arrival) {
            current.last_sent = current.last_sent.max(sent);
            current.last_arrival = arrival;
            return None;
        }
        let closed = *current;
        *current = Group::begin(sent, arrival);
        let before = self.before.replace(closed)?;
        let Some(arrived) = closed.last_arrival.checked_sub(before.last_arrival) else {
            self.reordered += 1;
            if self.reordered >= MAX_REORDERED {
                *self = Self::default();
            }
            return None;
        };
        self.reordered = 0;
        Some(GroupDelta {
            sent: closed.last_sent.saturating_sub(before.last_sent),
            arrived,
            at: closed.last_arrival,
        })
    }
}

impl Group {
    fn begin(sent: Duration, arrival: Duration) -> Self {
        Self {
            first_sent: sent,
            last_sent: sent,
            first_arrival: arrival,
            last_arrival: arrival,
        }
    }

    fn takes(&self, sent: Duration, arrival: Duration) -> bool {
        if sent.saturating_sub(self.first_sent) <= BURST {
            return true;
        }
        let arrived_after = arrival.saturating_sub(self.last_arrival);
        let sent_after = sent.saturating_sub(self.last_sent);
        arrived_after < sent_after
            && arrived_after <= ARRIVAL_BURST
            && arrival.saturating_sub(self.first_arrival) < MAX_BURST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deltas(packets: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let mut groups = Groups::default();
        let packets = packets.iter().map(|(sent, arrival)| PacketResult {
            sent: Duration::from_millis(*sent),
            arrival: Some(Duration::from_millis(*arrival)),
            ..PacketResult::default()
        });
        let deltas = packets.filter_map(|packet| groups.push(&packet));
        deltas
            .map(|d| (d.sent.as_millis() as u64, d.arrived.as_millis() as u64))
            .collect()
    }

    #[test]
    fn a_frame_is_one_group() {
        let sent = [(0, 10), (1, 12), (2, 14), (33, 43), (34, 46), (66, 76)];
        assert_eq!(deltas(&sent), [(32, 32)]);
    }

    #[test]
    fn what_arrives_at_once_after_a_stall_is_one_group() {
        let stalled = [
            (0, 10),
            (20, 30),
            (40, 100),
            (60, 101),
            (80, 102),
            (120, 130),
        ];
        assert_eq!(deltas(&stalled), [(20, 20), (60, 72)]);
    }

    #[test]
    fn a_packet_that_was_overtaken_changes_nothing() {
        let sent = [(0, 10), (20, 30), (10, 31), (40, 50), (60, 70)];
        assert_eq!(deltas(&sent), [(20, 20), (20, 20)]);
    }
}
