//! Retransmission: answers the NACKs of sinks from the history of their source.

use std::time::Instant;

use portunus_graph::Stamp;
use portunus_rtp::SeqNo;

use super::Relaying;

impl Relaying<'_> {
    /// Sends a packet again that a sink has lost.
    pub(in crate::worker) fn send_again(
        &mut self,
        slot: usize,
        media: usize,
        seq: SeqNo,
        now: Instant,
    ) {
        // A packet that is not stored any more is lost. The receiver will request a keyframe.
        let _ = self.try_send_again(slot, media, seq, now);
    }

    fn try_send_again(
        &mut self,
        slot: usize,
        media: usize,
        seq: SeqNo,
        now: Instant,
    ) -> Option<()> {
        let send_time = self.network.send_time(now);
        let peer = self.peers.get_mut(slot)?;
        let sink = peer.tracks.get(media)?.sink.as_ref()?;
        let sent = sink.numbering.sent(seq)?;
        let source = self.graph.source(sent.source)?;
        if self.graph.nack_optimizations && source.is_outdated(sent.encoding, sent.seq) {
            return None;
        }
        let packet = source.remembered(sent.encoding, sent.seq)?;
        let playout_delay = sink
            .route
            .and_then(|slot| self.graph.route(slot)?.options.playout_delay);
        let transport_seq = peer.connection.next_transport_seq();
        let stamp = Stamp {
            send_time,
            transport_seq,
            playout_delay,
        };
        let pair = *peer.connection.transport.selected_pair()?;
        let room = self.network.room();
        let (number, lengths) = if sink.has_rtx() {
            let number = peer.connection.next_rtx(media)?;
            (
                number,
                sink.write_rtx(packet, &sent, number.wire(), &stamp, room)?,
            )
        } else {
            peer.connection.count_retransmission(media);
            let ((header_len, len), tail) = sink.write(packet, &sent, &stamp, room)?;
            let end = len + tail.len();
            room.get_mut(len..end)?.copy_from_slice(tail);
            (seq, (header_len, end))
        };
        let sealed = peer.connection.seal_again(number, lengths, room).ok()?;
        let way = self.network.way(&pair, peer.link)?;
        self.network.commit(sealed, &way);
        if peer.sending.is_recorded() && sink.is_numbered {
            peer.connection.record_sent(transport_seq, sealed, now);
        }
        // It does not wait, but it counts.
        if let Some(pacer) = peer.sending.pacer_mut() {
            pacer.spent(sealed, now);
        }
        if let Some(catch_up) = peer.sending.catch_up_mut() {
            catch_up.missed(sealed, now);
        }
        Some(())
    }
}
