//! Passes packets of ingests from sockets and feeds to sources.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use portunus_graph::{Layers, MessageKind, Packet, Source};
use portunus_rtp::codec::h264;
use portunus_rtp::{ExtensionMap, Fields, Header, Pt, SeqNo, header, write_header};
use portunus_sdp::negotiated::Codec;

use super::{Ingest, Ingests, Member, Role};
use crate::ingest::{
    Continuity, FeedEntry, IngestId, IngestMedia, MAX_PACKET, ParameterSets, Place, Refused,
    RtpIngest, Skew,
};
use crate::sys::ReceiveBatch;
use crate::worker::counters::Counters;
use crate::worker::graph::Graph;
use crate::worker::guard::guarded;
use crate::worker::other_workers::OtherWorkers;

/// The number of messages per recvmmsg call. The kernel may have joined up to 64 datagrams in each.
const MESSAGES: usize = 8;
/// The maximum number of datagrams per turn, so that they are relayed while they are in the core's
/// cache. The rest waits in the sockets, which take turns: a flood takes nothing from others.
const DATAGRAMS_PER_TURN: usize = 64;

/// The header of a packet of our own.
pub(in crate::worker) struct OwnHead {
    pub(in crate::worker) pt: Pt,
    pub(in crate::worker) marker: bool,
    /// `None` means the present timestamp.
    pub(in crate::worker) timestamp: Option<u32>,
}

/// The destination of what arrives for ingests.
pub(in crate::worker) struct Intake<'a> {
    pub(in crate::worker) graph: &'a mut Graph,
    pub(in crate::worker) others: &'a OtherWorkers,
    pub(in crate::worker) counters: &'a mut Counters,
}

impl Ingests {
    /// Takes what has arrived for ingests. Returns whether there is more.
    pub(in crate::worker) fn receive(
        &mut self,
        batch: &mut ReceiveBatch,
        into: &mut Intake<'_>,
        now: Instant,
    ) -> bool {
        let mut budget = DATAGRAMS_PER_TURN;
        for _ in 0..self.ready.len() {
            if budget == 0 {
                break;
            }
            let Some(index) = self.ready.pop_front() else {
                break;
            };
            if self.receive_port(index, (batch, &mut budget), into, now) {
                self.ready.push_back(index);
            } else if let Some(port) = self.ports.get_mut(index) {
                port.is_ready = false;
            }
        }
        let more = !self.ready.is_empty();
        more | self.receive_fed(into, now)
    }

    /// Reads a socket, up to the budget. Returns whether it may have more.
    fn receive_port(
        &mut self,
        index: usize,
        (batch, budget): (&mut ReceiveBatch, &mut usize),
        into: &mut Intake<'_>,
        now: Instant,
    ) -> bool {
        while let Some(port) = self.ports.get(index) {
            let (members, role) = (port.members.clone(), port.role);
            let received = batch.receive_up_to(&port.socket, MESSAGES);
            // An error of an earlier datagram to a closed port is reported once, before what
            // arrived.
            let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
            let received = match received.as_ref().err().is_some_and(refused) {
                true => batch.receive_up_to(&port.socket, MESSAGES),
                false => received,
            };
            let Ok(received) = received else {
                return false;
            };
            for message in batch.iter(received) {
                for datagram in message.data.chunks_mut(message.stride) {
                    *budget = budget.saturating_sub(1);
                    self.take_of_port((&members, role), (message.remote, datagram), into, now);
                }
            }
            if received < MESSAGES {
                return false;
            }
            if *budget == 0 {
                return true;
            }
        }
        false
    }

    /// Passes a datagram of a socket to its ingest, or RTCP to all of them.
    fn take_of_port(
        &mut self,
        (members, role): (&[Member], Role),
        (remote, datagram): (SocketAddr, &mut [u8]),
        into: &mut Intake<'_>,
        now: Instant,
    ) {
        match role {
            Role::Rtp => {
                let found = members.iter().find_map(|member| member.encoding(datagram));
                if let Some((ingest, encoding)) = found {
                    self.take(ingest, encoding, (Some(remote), datagram), into, now);
                }
            }
            Role::Rtcp => {
                for member in members {
                    self.take_rtcp(member.ingest, (remote, datagram), into, now);
                }
            }
        }
    }

    /// Takes a datagram as if it had come by socket `index`.
    #[cfg(feature = "testing")]
    pub(in crate::worker) fn take_by_port(
        &mut self,
        index: usize,
        (remote, datagram): (SocketAddr, &mut [u8]),
        into: &mut Intake<'_>,
        now: Instant,
    ) {
        if let Some(port) = self.ports.get(index) {
            let (members, role) = (port.members.clone(), port.role);
            self.take_of_port((&members, role), (remote, datagram), into, now);
        }
    }

    pub(in crate::worker) fn receive_fed(&mut self, into: &mut Intake<'_>, now: Instant) -> bool {
        let mut more = false;
        for n in 0..self.fed.len() {
            let Some(slot) = self.fed.get(n).copied() else {
                break;
            };
            let feed = |ingests: &Self| ingests.slots.get(slot)?.feed.as_ref()?.pop();
            let ingest = self.slots.get(slot);
            if !ingest.is_some_and(|ingest| ingest.feed.as_ref().is_some_and(|feed| feed.begin())) {
                continue;
            }
            self.count_refused_by_feed(slot, into, now);
            let mut budget = DATAGRAMS_PER_TURN;
            while budget > 0
                && let Some(fed) = feed(self)
            {
                budget -= 1;
                match fed {
                    FeedEntry::Packet {
                        encoding,
                        mut bytes,
                    } => {
                        self.take(slot, encoding, (None, &mut bytes), into, now);
                        let ingest = self.slots.get(slot);
                        if let Some(feed) = ingest.and_then(|ingest| ingest.feed.as_ref()) {
                            feed.recycle(bytes);
                        }
                    }
                    FeedEntry::Report {
                        encoding,
                        ntp,
                        timestamp,
                    } => self.take_report((slot, encoding), (ntp, timestamp), into, now),
                }
            }
            let ingest = self.slots.get(slot);
            if budget == 0
                && let Some(feed) = ingest.and_then(|ingest| ingest.feed.as_ref())
            {
                feed.postpone();
                more = true;
            }
        }
        more
    }

    /// Takes a packet from a thread. Packets for an ingest that is gone are dropped.
    pub(in crate::worker) fn take_delivered(
        &mut self,
        ingest: IngestId,
        packet: &mut [u8],
        into: &mut Intake<'_>,
        now: Instant,
    ) {
        if let Some(slot) = self.by_id.get(&ingest).copied() {
            self.take(slot, 0, (None, packet), into, now);
        }
    }

    /// Inserts a packet of our own. Without a timestamp, it gets the present one, which is
    /// returned.
    pub(in crate::worker) fn take_own(
        &mut self,
        slot: usize,
        head: OwnHead,
        payload: &[u8],
        into: &mut Intake<'_>,
        now: Instant,
    ) -> Option<u32> {
        let ingest = self.slots.get_mut(slot)?;
        let IngestMedia::Rtp(media) = &ingest.media else {
            return None;
        };
        let OwnHead { pt, marker, .. } = head;
        let codec = media.codec_of(pt)?;
        let stream = ingest.encodings.first_mut()?;
        let place = stream.continuity.append(now)?;
        let timestamp = head.timestamp.unwrap_or(place.timestamp);
        let fields = Fields {
            marker,
            padding: false,
            pt,
            sequence: place.seq.wire(),
            timestamp,
            ssrc: stream.continuity.ssrc()?,
        };
        let stretch = stream.stretch;
        into.graph.take_in(ingest.source, |source| {
            if !source.is_wanted() {
                return None;
            }
            let mut shared = source.recycle(0, place.seq, now)?;
            write_packet(&mut shared, &fields, payload)?;
            let packet = Arc::get_mut(&mut shared)?;
            packet.seq = place.seq;
            packet.encoding = 0;
            packet.stretch = stretch;
            packet.codec = codec;
            packet.arrival = now;
            packet.set_extensions(ExtensionMap::default());
            let layers = Layers {
                start: true,
                end: true,
                ..Layers::default()
            };
            packet.describe(layers.into());
            source.push(shared, now);
            Some(())
        });
        Some(timestamp)
    }

    /// Counts what the feed of an ingest dropped. The feeder knows, and reports it.
    fn count_refused_by_feed(&self, slot: usize, into: &mut Intake<'_>, now: Instant) {
        let ingest = self.slots.get(slot);
        let Some((ingest, feed)) = ingest.and_then(|it| Some((it, it.feed.as_ref()?))) else {
            return;
        };
        for (why, count) in feed.take_refused() {
            if count > 0 && ingest.enabled {
                ingest.status.refuse(why, count, now);
                into.counters.ingest_refused(why, count);
            }
        }
    }

    /// Takes a packet or message of an ingest, and its sender, if known.
    pub(in crate::worker) fn take(
        &mut self,
        slot: usize,
        encoding: u8,
        (from, datagram): (Option<SocketAddr>, &mut [u8]),
        into: &mut Intake<'_>,
        now: Instant,
    ) {
        let Some(ingest) = self.slots.get_mut(slot) else {
            return;
        };
        if !ingest.enabled {
            ingest.status.ignore(now);
            into.counters.ingest_ignored();
            return;
        }
        let key = ingest.source;
        let len = datagram.len();
        let taken = into.graph.take_in(key, |source| {
            guarded(|| match ingest.media {
                _ if len > MAX_PACKET => Err(Refused::TooLong),
                IngestMedia::Rtp(_) => ingest.take_rtp(source, encoding, datagram, now),
                IngestMedia::Data(_) => ingest.take_message(source, datagram, now),
            })
        });
        let Some(taken) = taken else {
            return;
        };
        let has_news = std::mem::take(&mut ingest.upstream_changed);
        // After a fault of ours, the packet is dropped.
        match taken.unwrap_or(Err(Refused::Malformed)) {
            Ok(()) => {
                ingest.status.accepted(len, now);
                into.counters.ingested(len);
            }
            Err(why) => {
                // Simulcast has a port for each encoding, or one for all.
                let own = ingest.ports.get(usize::from(encoding));
                let own = own.filter(|port| ingest.rtcp != Some(**port));
                let port = own.or(ingest.ports.first()).copied();
                self.refuse((slot, port), from, why, into.counters, now);
            }
        }
        if has_news {
            self.changed();
        }
    }

    /// Counts what an ingest refuses, and logs it once, with its address and port if they are
    /// known.
    #[cold]
    pub(in crate::worker) fn refuse(
        &mut self,
        (slot, port): (usize, Option<usize>),
        from: Option<SocketAddr>,
        why: Refused,
        counters: &mut Counters,
        now: Instant,
    ) {
        counters.ingest_refused(why, 1);
        let Some(ingest) = self.slots.get_mut(slot) else {
            return;
        };
        ingest.status.refuse(why, 1, now);
        if ingest.refusals.begin(why, now) {
            let port = port.and_then(|port| self.ports.get(port));
            tracing::warn!(
                worker = self.worker,
                port = port.map(|port| port.socket.port()),
                from = from.map(tracing::field::display),
                reason = why.name(),
                "packets for a source are refused: {}",
                why.cause()
            );
        }
    }
}

impl Ingest {
    /// Finds the place of an RTP packet, and passes it to the source.
    fn take_rtp(
        &mut self,
        source: &mut Source,
        encoding: u8,
        datagram: &mut [u8],
        now: Instant,
    ) -> Result<(), Refused> {
        let IngestMedia::Rtp(media) = &self.media else {
            return Err(Refused::Malformed);
        };
        let stream = self.encodings.get_mut(usize::from(encoding));
        let stream = stream.ok_or(Refused::Malformed)?;
        let (mut header, datagram) = match &mut stream.protection {
            Some(protection) => {
                let (header, len) = protection.open(datagram, now)?;
                (header, datagram.get_mut(..len).unwrap_or_default())
            }
            None => {
                let header = Header::parse(datagram);
                (header.map_err(|_| Refused::Malformed)?, datagram)
            }
        };
        let codec = media.codec_of(header.pt).ok_or(Refused::PayloadType)?;
        let (ssrc, lost) = (stream.continuity.ssrc(), stream.continuity.lost());
        let mut place = stream.continuity.accept(&header, now)?;
        self.status.change_lost(lost, stream.continuity.lost());
        if ssrc != Some(header.ssrc) {
            self.status.set_ssrc(header.ssrc);
            self.upstream.set_ssrc(encoding, header.ssrc);
            self.upstream_changed = true;
        }
        if place.restarted {
            stream.stretch = stream.stretch.wrapping_add(1);
        }
        if let Some(skew) = &mut stream.skew
            && place.newest
            && !adjust(&mut stream.continuity, skew, &header, &mut place, now)
        {
            return Ok(());
        }
        if let Some(levels) = &mut self.levels
            && place.newest
            && let Some(level) = portunus_graph::level(&header, datagram, &self.extensions)
        {
            levels.take(level, now);
        }
        if !source.is_wanted() {
            return Ok(());
        }
        if let Some(sets) = &media.h264_parameter_sets
            && place.newest
        {
            let payload = header.payload(datagram);
            if h264::has_parameter_sets(payload) {
                // Parameter sets in the stream are newer.
                stream.introduced = Some(place.timestamp);
            } else if stream.introduced != Some(place.timestamp)
                && h264::begins_intra_picture(payload)
            {
                stream.introduced = Some(place.timestamp);
                let seq = stream.continuity.insert(&mut place);
                introduce(
                    source,
                    sets,
                    seq,
                    &place,
                    (&header, stream.stretch),
                    encoding,
                    now,
                );
            }
        }
        place_header(&mut header, datagram, &place);
        let shared = source.recycle(encoding, place.seq, now);
        let mut shared = shared.ok_or(Refused::Late)?;
        let packet = Arc::get_mut(&mut shared).ok_or(Refused::Late)?;
        packet.fill(datagram);
        packet.header = header;
        packet.seq = place.seq;
        packet.encoding = encoding;
        packet.stretch = stream.stretch;
        packet.is_opaque = media.opaque;
        packet.set_codec(codec);
        packet.arrival = now;
        packet.clock = media.clock;
        packet.set_extensions(self.extensions);
        let inspector = &mut stream.inspector;
        packet.describe(inspector.inspect(codec, &header, datagram, &self.extensions));
        flatten_layers(media, packet);
        source.even_out(packet);
        if packet.layers.keyframe && packet.shows_keyframes() {
            self.upstream.keyframe_came(encoding);
        } else if place.restarted && media.is_video() {
            // The numbers do not tell receivers that they lack the pictures that it refers to.
            self.upstream.want_keyframe(encoding);
            self.upstream_changed = true;
        }
        source.push(shared, now);
        Ok(())
    }

    /// Passes a message to the source, as the payload of a packet.
    fn take_message(
        &mut self,
        source: &mut Source,
        message: &[u8],
        now: Instant,
    ) -> Result<(), Refused> {
        let kind = source.format.messages.map(|messages| messages.kind);
        let kind = kind.ok_or(Refused::Malformed)?;
        let (pt, message) = match kind {
            MessageKind::Marked => unframe(message).ok_or(Refused::Malformed)?,
            MessageKind::Text | MessageKind::Bytes => (Pt(0), message),
        };
        if message.is_empty() || kind.is_text(pt) && std::str::from_utf8(message).is_err() {
            return Err(Refused::Malformed);
        }
        if !source.is_wanted() {
            return Ok(());
        }
        let seq = SeqNo(self.status.packets() + 1);
        let fields = Fields {
            marker: true,
            padding: false,
            pt,
            sequence: seq.wire(),
            // Each message has its own time.
            timestamp: seq.0 as u32,
            ssrc: Default::default(),
        };
        let mut shared = source.recycle(0, seq, now).ok_or(Refused::Late)?;
        write_packet(&mut shared, &fields, message).ok_or(Refused::Malformed)?;
        let packet = Arc::get_mut(&mut shared).ok_or(Refused::Late)?;
        packet.seq = seq;
        packet.encoding = 0;
        packet.codec = Codec::Opus;
        packet.arrival = now;
        let layers = Layers {
            keyframe: true,
            start: true,
            end: true,
            ..Layers::default()
        };
        packet.describe(layers.into());
        source.push(shared, now);
        Ok(())
    }
}

/// Splits a message from its RTP header, and returns its payload type, too.
fn unframe(datagram: &[u8]) -> Option<(Pt, &[u8])> {
    let header = Header::parse(datagram).ok()?;
    Some((header.pt, header.payload(datagram)))
}

/// Compensates for the sender's clock. Returns whether the packet is to be relayed.
fn adjust(
    continuity: &mut Continuity,
    skew: &mut Skew,
    header: &Header,
    place: &mut Place,
    now: Instant,
) -> bool {
    if place.restarted {
        skew.restart();
    }
    let adjustment = skew.look(header.timestamp, now);
    if adjustment.shift != 0 {
        continuity.shift(place, adjustment.shift);
    }
    if adjustment.jump {
        continuity.insert(place);
    }
    if adjustment.leave_out {
        continuity.leave_out();
    }
    !adjustment.leave_out
}

/// Inserts parameter sets before a picture.
fn introduce(
    source: &mut Source,
    sets: &ParameterSets,
    seq: SeqNo,
    place: &Place,
    (picture, stretch): (&Header, u8),
    encoding: u8,
    now: Instant,
) -> Option<()> {
    let fields = Fields {
        marker: false,
        padding: false,
        pt: picture.pt,
        sequence: seq.wire(),
        timestamp: place.timestamp,
        ssrc: picture.ssrc,
    };
    let mut shared = source.recycle(encoding, seq, now)?;
    write_packet(&mut shared, &fields, sets.payload())?;
    let packet = Arc::get_mut(&mut shared)?;
    packet.seq = seq;
    packet.encoding = encoding;
    packet.stretch = stretch;
    packet.codec = Codec::H264;
    packet.is_opaque = false;
    packet.arrival = now;
    packet.set_extensions(ExtensionMap::default());
    let layers = Layers {
        keyframe: true,
        start: true,
        ..Layers::default()
    };
    packet.describe(layers.into());
    source.push(shared, now);
    Some(())
}

/// Returns a packet of our own.
fn write_packet(shared: &mut Arc<Packet>, fields: &Fields, payload: &[u8]) -> Option<()> {
    let packet = Arc::get_mut(shared)?;
    let mut head = [0; header::FIXED_HEADER_LEN];
    write_header(&mut head, fields, []).ok()?;
    packet.fill(&head);
    packet.data.extend_from_slice(payload);
    packet.header = Header::parse(&packet.data).ok()?;
    Some(())
}

/// Sets the place of a packet.
fn place_header(header: &mut Header, datagram: &mut [u8], place: &Place) {
    header.sequence = place.seq.wire();
    header.timestamp = place.timestamp;
    header::set_sequence(datagram, header.sequence);
    header::set_timestamp(datagram, header.timestamp);
}

/// Removes spatial layers, unless the ingest has them.
fn flatten_layers(media: &RtpIngest, packet: &mut Packet) {
    if media.codec == Codec::Vp9 && !media.svc {
        packet.layers.svc = false;
        packet.layers.spatial = 0;
        packet.layers.temporal = 0;
    }
}
