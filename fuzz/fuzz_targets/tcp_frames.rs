#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_rtc::framing::{Deframer, FRAME_HEAD, frame_head};

/// Returns the datagrams in pieces of at most `piece` bytes, and whether a frame was too long.
fn deframed(stream: &[u8], piece: usize, most: usize) -> (Vec<Vec<u8>>, bool) {
    let (mut deframer, mut datagrams) = (Deframer::new(most), Vec::new());
    for piece in stream.chunks(piece) {
        let mut piece = piece.to_vec();
        let (mut input, mut whole) = (piece.as_mut_slice(), Vec::new());
        loop {
            match deframer.next(&mut input, &mut whole) {
                Ok(Some(frame)) => datagrams.push(frame.to_vec()),
                Ok(None) => break,
                Err(_) => return (datagrams, true),
            }
        }
        assert!(input.is_empty() && deframer.kept() < FRAME_HEAD + most);
    }
    (datagrams, false)
}

// The first byte chooses the longest frame, the second one how the stream is split, which makes no
// difference. The output, put into frames again, equals the input.
fuzz_target!(|data: &[u8]| {
    let [most, piece, stream @ ..] = data else {
        return;
    };
    let most = 1 + usize::from(*most) * 64;
    let (datagrams, is_refused) = deframed(stream, 1 + usize::from(*piece), most);
    assert_eq!(
        deframed(stream, usize::MAX, most),
        (datagrams.clone(), is_refused)
    );
    let mut again = Vec::new();
    for datagram in &datagrams {
        assert!(!datagram.is_empty() && datagram.len() <= most);
        again.extend(frame_head(datagram.len()).expect("it came in a frame"));
        again.extend(datagram);
    }
    assert_eq!(
        deframed(&again, 1 + usize::from(*piece), most),
        (datagrams, false)
    );
});
