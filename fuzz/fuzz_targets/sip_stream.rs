#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_sip::framing::{Frame, Role, Stream, StreamError, datagram};
use portunus_sip::message::Message;

fn frames(role: Role, data: &[u8], piece: usize) -> (Vec<Frame>, Option<StreamError>) {
    let (mut stream, mut frames) = (Stream::new(role), Vec::new());
    for piece in data.chunks(piece) {
        stream.push(piece);
        loop {
            match stream.next() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}

// The first byte chooses how the stream is split, which makes no difference. A message of a stream
// is one in a datagram, too.
fuzz_target!(|data: &[u8]| {
    let [first, data @ ..] = data else {
        return;
    };
    let piece = 1 + usize::from(*first);
    for role in [Role::Accepted, Role::Connected] {
        let (whole, error) = frames(role, data, usize::MAX);
        assert_eq!(frames(role, data, piece), (whole.clone(), error));
        for frame in whole {
            if let Frame::Message(message) = frame
                && Message::parse(&message).is_ok()
            {
                assert_eq!(datagram(&message), Some(message.as_slice()));
            }
        }
    }
    let _ = datagram(data);
});
