#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_rtp::rtcp::{Compound, NackWriter, Packet, TwccWriter, WritePacket};

fuzz_target!(|datagram: &[u8]| {
    for packet in Compound::new(datagram).flatten() {
        match packet {
            Packet::SenderReport(view) => drop(view.blocks().last()),
            Packet::ReceiverReport(view) => drop(view.blocks().last()),
            Packet::Sdes(view) => drop(view.chunks().map(|chunk| chunk.items().count()).max()),
            Packet::Bye(view) => drop((view.ssrcs().count(), view.reason())),
            Packet::Fir(view) => drop(view.entries().last()),
            Packet::Remb(view) => drop(view.ssrcs().last()),
            Packet::Xr(view) => drop(view.blocks().last()),
            Packet::Nack(view) => {
                let lost: Vec<u16> = view.lost().take(2_000).collect();
                let nack = NackWriter {
                    sender: view.sender,
                    media: view.media,
                    lost: lost.iter().copied(),
                };
                nack.write_into(&mut vec![0; nack.size()])
                    .expect("room for what was asked");
            }
            Packet::Twcc(view) => {
                let arrivals: Vec<_> = view
                    .statuses()
                    .filter_map(|s| Some((s.sequence, s.arrival?)))
                    .collect();
                let who = (view.sender, view.media);
                let mut rest = &arrivals[..];
                while let Some((writer, after)) = TwccWriter::new(who, 0, view.base, rest, 1_200) {
                    assert!(writer.write_into(&mut [0; 1_200]).is_ok() && after.len() < rest.len());
                    rest = after;
                }
            }
            _ => {}
        }
    }
});
