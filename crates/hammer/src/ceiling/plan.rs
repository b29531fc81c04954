//! The packets for one viewer: their order and their joining.

use std::time::Duration;

use crate::traffic::{AUDIO_PERIOD, Traffic};

/// The least duration of a plan, in frame intervals, so that varying sizes have their mean.
const INTERVALS: u32 = 60;
/// The most padding that one byte can count (RFC 3550 section 5.1).
const MOST_PADDING: usize = 255;
/// The most datagrams, and the most bytes, that the kernel accepts as one message.
const JOINED_DATAGRAMS: usize = 64;
const JOINED_BYTES: usize = 65_000;

/// The packets that leave as one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Joining {
    /// The frames of a source that wait and leave together. 1 if they are not joined.
    pub(super) frames: u32,
    /// Whether frames of several sources for one connection are joined.
    pub(super) sources: bool,
    /// Whether packets are padded to the size of others, so that they can be joined.
    pub(super) padded: bool,
}

/// A packet of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Datagram {
    /// The size as RTP, in bytes.
    pub(super) bytes: usize,
    /// The index of the connection's feed.
    pub(super) feed: u32,
    /// Whether it is the last one of its frame.
    pub(super) marker: bool,
    /// Whether no later packet is joined to it.
    pub(super) last: bool,
}

/// The repeated packets of one connection: consecutive windows, each sent at one moment.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) windows: Vec<Vec<Datagram>>,
}

/// The packets of a feed at one moment: a frame, or an audio packet, with sizes as RTP.
#[derive(Debug, Clone)]
struct Burst {
    at: Duration,
    sizes: Vec<usize>,
}

impl Joining {
    /// No joining.
    pub(super) const NONE: Self = Self {
        frames: 1,
        sources: false,
        padded: false,
    };

    /// Returns the numbers of frames that may pay to join, until a message is full.
    pub(super) fn frames_to_try(traffic: &Traffic, tag_bytes: usize) -> impl Iterator<Item = u32> {
        let (mut packets, mut bytes) = (0, 0);
        let sizes = match traffic.video_bps {
            0 => vec![traffic.audio_packet_bytes()],
            _ => traffic.frame(0),
        };
        for size in sizes {
            packets += 1;
            bytes += size + tag_bytes;
        }
        let fit = (JOINED_DATAGRAMS / packets.max(1)).min(JOINED_BYTES / bytes.max(1));
        // One more than fits, so that messages are full.
        let most = fit as u32 + 1;
        [2, 3, 4, 6, 8, 12, 16, 24, 32]
            .into_iter()
            .filter(move |frames| *frames <= most.max(2))
    }
}

impl Plan {
    /// Makes the plan for a connection with `feeds` feeds.
    pub(super) fn new(traffic: &Traffic, feeds: u32, joining: Joining) -> Self {
        let interval = traffic.interval();
        let count = INTERVALS.div_ceil(joining.frames);
        let all = interval * joining.frames * count;
        let [video, audio] = [video(traffic, all), audio(traffic, all)];
        let windows = (0..count).map(|n| {
            let window = interval * joining.frames;
            let (from, to) = (window * n, window * (n + 1));
            let within = |burst: &&Burst| (from..to).contains(&burst.at);
            let mut datagrams = Vec::new();
            for kind in [&video, &audio] {
                let bursts: Vec<&Burst> = kind.iter().filter(within).collect();
                for feed in 0..feeds {
                    for burst in &bursts {
                        let last = burst.sizes.len().saturating_sub(1);
                        let packets = burst.sizes.iter().enumerate();
                        datagrams.extend(packets.map(|(at, bytes)| Datagram {
                            bytes: *bytes,
                            feed,
                            marker: at == last,
                            last: false,
                        }));
                    }
                    if !joining.sources || feed + 1 == feeds {
                        end(&mut datagrams);
                    }
                }
            }
            if joining.padded {
                pad(&mut datagrams);
            }
            datagrams
        });
        Self {
            windows: windows.filter(|window| !window.is_empty()).collect(),
        }
    }
}

/// Returns whether padding makes a difference.
pub(super) fn sizes_differ(traffic: &Traffic) -> bool {
    let plain = Plan::new(traffic, 1, Joining::NONE);
    let padded = Plan::new(
        traffic,
        1,
        Joining {
            padded: true,
            ..Joining::NONE
        },
    );
    plain.windows != padded.windows
}

/// Pads joined packets to the largest one, as far as RTP can. The last one of a message may be
/// shorter.
pub(super) fn pad(datagrams: &mut [Datagram]) {
    for message in datagrams.split_inclusive_mut(|datagram| datagram.last) {
        let largest = message.iter().map(|datagram| datagram.bytes).max();
        let largest = largest.unwrap_or_default();
        let all_but_last = message.split_last_mut().map(|(_, others)| others);
        for datagram in all_but_last.unwrap_or_default() {
            if largest - datagram.bytes <= MOST_PADDING {
                datagram.bytes = largest;
            }
        }
    }
}

fn end(datagrams: &mut [Datagram]) {
    if let Some(datagram) = datagrams.last_mut() {
        datagram.last = true;
    }
}

fn video(traffic: &Traffic, until: Duration) -> Vec<Burst> {
    let frames = (0u32..).map(|n| Burst {
        at: traffic.frame_period() * n,
        sizes: traffic.frame(n.into()),
    });
    let frames = frames.take_while(|burst| burst.at < until);
    frames.filter(|burst| !burst.sizes.is_empty()).collect()
}

fn audio(traffic: &Traffic, until: Duration) -> Vec<Burst> {
    if traffic.audio_bps == 0 {
        return Vec::new();
    }
    let packets = (0u32..).map(|n| Burst {
        at: AUDIO_PERIOD * n,
        sizes: vec![traffic.audio_packet_bytes()],
    });
    packets.take_while(|burst| burst.at < until).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "a test fails by a panic")]
    use super::*;
    use crate::traffic::Sizes;

    fn traffic(sizes: Sizes) -> Traffic {
        Traffic {
            video_bps: 2_000_000,
            fps: 30,
            packets_per_frame: Some(7),
            sizes,
            audio_bps: 64_000,
        }
    }

    fn packets(plan: &Plan) -> usize {
        plan.windows.iter().map(Vec::len).sum()
    }

    /// Returns the number of datagrams in each message of the first window.
    fn messages(plan: &Plan) -> Vec<usize> {
        let window = plan.windows[0].split_inclusive(|datagram| datagram.last);
        window.map(<[Datagram]>::len).collect()
    }

    #[test]
    fn in_time_each_window_has_one_frame_of_each_feed_and_the_audio_beside() {
        let plan = Plan::new(&traffic(Sizes::Equal), 2, Joining::NONE);
        assert_eq!(plan.windows.len(), 60);
        // Audio every 20 ms: at 0 and 20 ms of the first 33 ms.
        assert_eq!(messages(&plan), [7, 7, 2, 2]);
        let markers = plan.windows[0].iter().filter(|packet| packet.marker);
        assert_eq!(markers.count(), 6);
    }

    #[test]
    fn joined_frames_are_the_same_packets_in_fewer_messages() {
        let traffic = traffic(Sizes::Equal);
        let one = Plan::new(&traffic, 2, Joining::NONE);
        let joining = Joining {
            frames: 4,
            sources: true,
            padded: false,
        };
        let four = Plan::new(&traffic, 2, joining);
        assert_eq!(packets(&one), packets(&four));
        assert_eq!(messages(&four), [56, 14]);
    }

    #[test]
    fn padding_makes_all_but_the_last_packet_of_a_message_equal() {
        let joining = Joining {
            padded: true,
            ..Joining::NONE
        };
        let plan = Plan::new(&traffic(Sizes::AlmostEqual), 1, joining);
        for message in plan
            .windows
            .iter()
            .flatten()
            .collect::<Vec<_>>()
            .split_inclusive(|d| d.last)
        {
            let first = message[0].bytes;
            let others = &message[..message.len() - 1];
            assert!(
                others.iter().all(|packet| packet.bytes == first),
                "{message:?}"
            );
        }
        assert!(sizes_differ(&traffic(Sizes::AlmostEqual)));
        assert!(!sizes_differ(&traffic(Sizes::Equal)));
    }

    #[test]
    fn frames_are_joined_until_a_message_is_full() {
        let of = |traffic: &Traffic| Joining::frames_to_try(traffic, 16).collect::<Vec<_>>();
        // Seven frames of seven packets fit.
        assert_eq!(of(&traffic(Sizes::Equal)), [2, 3, 4, 6, 8]);
        let mut large = traffic(Sizes::Equal);
        (large.video_bps, large.packets_per_frame) = (8_000_000, None);
        assert_eq!(of(&large), [2]);
    }
}
