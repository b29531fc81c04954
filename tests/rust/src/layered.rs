//! Layered video of a sender: payloads, header extensions and descriptions.

use portunus_rtp::extension::{AllocatedLayer, VideoLayersAllocation};

/// Returns a packet with the headers of a whole VP8 picture of a temporal layer (RFC 7741 section
/// 4.2).
pub fn vp8_layer(number: u16, temporal: u8, keyframe: bool) -> Vec<u8> {
    let [high, low] = number.to_be_bytes();
    let tl0 = (number / 4) as u8;
    let mut payload = vec![0x90, 0xe0, 0x80 | high, low, tl0, temporal << 6 | 0x20];
    match keyframe {
        true => payload.extend([0x10, 0, 0, 0x9d, 0x01, 0x2a, 16, 0, 16, 0]),
        false => payload.push(0x11),
    }
    payload
}

/// Returns a packet with the headers of a whole VP9 picture of a layer (RFC 9628 section 4.2, not
/// flexible).
pub fn vp9_layer(number: u16, (spatial, temporal): (u8, u8), keyframe: bool) -> Vec<u8> {
    let [high, low] = number.to_be_bytes();
    let inter_picture = if keyframe { 0 } else { 0x40 };
    let layer = temporal << 5 | 0x10 | spatial << 1 | u8::from(spatial > 0);
    let tl0 = (number / 4) as u8;
    vec![
        0xac | inter_picture,
        0x80 | high,
        low,
        layer,
        tl0,
        0x82,
        0x49,
    ]
}

/// Returns a sender's description of `spatial` layers of `temporal` each, in a single stream or,
/// with several `streams`, in each of them.
pub fn allocation(stream: u8, streams: u8, spatial: u8, temporal: u8) -> Vec<u8> {
    let layers = (0..streams).flat_map(|stream| {
        (0..spatial).map(move |spatial| AllocatedLayer {
            stream,
            spatial,
            temporal_layers: temporal,
            bitrates: [100, 200, 300, 400],
            format: None,
        })
    });
    let layers: Vec<_> = layers.collect();
    let allocation = VideoLayersAllocation::new(stream, streams, &layers).unwrap();
    let mut value = vec![0; VideoLayersAllocation::MAX_LEN];
    let len = allocation.write_into(&mut value).unwrap();
    value.truncate(len);
    value
}

/// Returns the description `sdp` with the m-line `mid` sent as encodings of these names, the best
/// first (RFC 8853).
pub fn with_rids(sdp: &str, mid: &str, rids: &[&str]) -> String {
    let own = format!("a=mid:{mid}");
    let mut text = String::new();
    for line in sdp.lines() {
        text.push_str(line);
        text.push_str("\r\n");
        if line == own {
            for rid in rids {
                text.push_str(&format!("a=rid:{rid} send\r\n"));
            }
            text.push_str(&format!("a=simulcast:send {}\r\n", rids.join(";")));
        }
    }
    text
}
