//! The instructions that each packet, each join and each request costs: the same on a busy machine
//! as on an idle one.
#![allow(missing_docs, reason = "gungraun's macros make public items")]

use std::hint::black_box;

use gungraun::prelude::*;
use portunus_core::request::Request;
use portunus_instructions::{Crypt, Frame, OFFER, PACKET, answer, message, parse, request, write};
use portunus_rtp::Header;
use portunus_sdp::RemoteDescription;
use portunus_srtp::Profile;

#[library_benchmark]
#[bench::one_viewer(args = (1), setup = Frame::to)]
#[bench::twenty_viewers(args = (20), setup = Frame::to)]
fn relay(frame: Frame) -> Frame {
    black_box(frame.relay())
}

fn written() -> Vec<u8> {
    let mut packet = vec![0; PACKET];
    write(&mut packet);
    packet
}

#[library_benchmark]
#[bench::video(setup = written)]
fn write_header(mut packet: Vec<u8>) -> Vec<u8> {
    black_box(write(black_box(&mut packet)));
    packet
}

#[library_benchmark]
#[bench::video(setup = written)]
fn parse_header(packet: Vec<u8>) -> Vec<u8> {
    let header = Header::parse(black_box(&packet));
    let ids = header.map(|header| header.extensions(&packet).map(|(id, _)| id).max());
    black_box(ids).ok();
    packet
}

#[library_benchmark]
#[bench::gcm_128(args = (Profile::AeadAes128Gcm), setup = Crypt::clear)]
#[bench::cm_80(args = (Profile::Aes128CmSha1_80), setup = Crypt::clear)]
fn seal(packet: Crypt) -> Crypt {
    black_box(packet.seal(1))
}

#[library_benchmark]
#[bench::gcm_128(args = (Profile::AeadAes128Gcm), setup = Crypt::sealed)]
#[bench::cm_80(args = (Profile::Aes128CmSha1_80), setup = Crypt::sealed)]
fn open(packet: Crypt) -> Crypt {
    black_box(packet.open(2))
}

#[library_benchmark]
#[bench::chromium(OFFER)]
fn parse_offer(offer: &str) -> RemoteDescription {
    black_box(parse(black_box(offer)))
}

#[library_benchmark]
#[bench::chromium(args = (OFFER), setup = parse)]
fn answer_offer(offer: RemoteDescription) -> String {
    black_box(answer(offer))
}

#[library_benchmark]
#[bench::join(setup = message)]
fn parse_request(message: String) -> (String, Request) {
    let request = black_box(request(black_box(&message)));
    (message, request)
}

library_benchmark_group!(
    name = packets,
    benchmarks = [relay, write_header, parse_header]
);
library_benchmark_group!(name = srtp, benchmarks = [seal, open]);
library_benchmark_group!(name = sdp, benchmarks = [parse_offer, answer_offer]);
library_benchmark_group!(name = json, benchmarks = parse_request);

main!(library_benchmark_groups = [packets, srtp, sdp, json]);
