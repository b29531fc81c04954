//! Messages in datagrams and in streams, however the stream is cut.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "the names say all"
)]

use portunus_sip::framing::{Frame, Role, Stream, StreamError, datagram};
use portunus_sip::message::{MAX_MESSAGE, Message};
use proptest::prelude::*;

fn message(number: u32, length: &str, body: &str) -> String {
    format!(
        "OPTIONS sip:a SIP/2.0\r\nVia: SIP/2.0/TCP a;branch=z9hG4bK{number}\r\nFrom: <sip:a>;tag=1\r\nTo: <sip:b>\r\n\
         Call-ID: c\r\nCSeq: {number} OPTIONS\r\n{length}\r\n{body}"
    )
}

fn whole(number: u32, body: &str) -> String {
    message(number, &format!("l: {}\r\n", body.len()), body)
}

/// Returns all items of a stream of `bytes` cut into pieces of these lengths, over and over.
fn frames(role: Role, bytes: &[u8], pieces: &[usize]) -> (Vec<Frame>, Option<StreamError>) {
    let mut stream = Stream::new(role);
    let mut frames = Vec::new();
    let mut rest = bytes;
    for length in pieces.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at((*length).clamp(1, rest.len()));
        rest = after;
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

fn number(frame: &Frame) -> u32 {
    match frame {
        Frame::Message(message) => {
            let message = Message::parse(message).unwrap();
            message.headers().cseq().unwrap().unwrap().number
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stream_is_cut_at_content_length() {
    let text = format!(
        "{}{}\r\n{}{}",
        whole(1, "v=0\r\n\r\n"),
        whole(2, ""),
        message(3, "", ""),
        whole(4, "x")
    );
    for pieces in [vec![1], vec![7], vec![100_000], vec![1, 2, 300]] {
        let (frames, error) = frames(Role::Accepted, text.as_bytes(), &pieces);
        assert_eq!(
            (frames.iter().map(number).collect::<Vec<_>>(), error),
            (vec![1, 2, 3, 4], None)
        );
        assert_eq!(
            frames[0],
            Frame::Message(whole(1, "v=0\r\n\r\n").into_bytes())
        );
    }
    let (lf, _) = frames(
        Role::Accepted,
        text.replace('\r', "").replace("l: 7", "l: 5").as_bytes(),
        &[1],
    );
    assert_eq!(lf.len(), 4);
}

#[test]
fn keep_alives_are_told_from_line_ends_before_messages() {
    let text = format!(
        "\r\n\r\n\r\n\r\n{}\r\n{}\r\n\r\n",
        whole(1, ""),
        whole(2, "")
    );
    for pieces in [vec![1], vec![3], vec![1000]] {
        let (frames, _) = frames(Role::Accepted, text.as_bytes(), &pieces);
        assert_eq!(frames.len(), 5, "{frames:?}");
        assert_eq!(
            (&frames[0], &frames[1], &frames[4]),
            (&Frame::Ping, &Frame::Ping, &Frame::Ping)
        );
    }
    // The side that connected gets no ping: a pong to a pong would never end.
    let (frames, _) = frames(Role::Connected, b"\r\n\r\n\r\n", &[2]);
    assert_eq!(frames, vec![Frame::Pong; 3]);
}

/// The status that answers a message that cannot be used.
fn refusal(frame: &Frame) -> u16 {
    match frame {
        Frame::Message(message) => Message::parse(message)
            .unwrap_err()
            .answer()
            .unwrap()
            .status
            .code(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_malformed_message_is_skipped() {
    let text = format!("{}{}", whole(1, "abc").replace("From", "Fro"), whole(2, ""));
    let (frames, error) = frames(Role::Accepted, text.as_bytes(), &[5]);
    assert_eq!(
        (refusal(&frames[0]), number(&frames[1]), error),
        (400, 2, None)
    );
}

#[test]
fn a_stream_that_cannot_be_cut_ends() {
    for (length, expected) in [
        ("l: -1\r\n", StreamError::Unframed),
        ("l: 1\r\nl: 2\r\n", StreamError::Unframed),
        ("l: 99999999999999999999999\r\n", StreamError::Unframed),
        ("l: 70000\r\n", StreamError::TooLarge),
    ] {
        let text = format!("{}{}", message(1, length, ""), whole(2, ""));
        let (frames, error) = frames(Role::Accepted, text.as_bytes(), &[1000]);
        assert_eq!((frames.len(), error), (1, Some(expected)), "{length}");
        assert_eq!(refusal(&frames[0]), 400, "{length}");
    }
    let (none, error) = frames(Role::Accepted, &vec![b'x'; MAX_MESSAGE * 3], &[5000]);
    assert_eq!((none.len(), error), (0, Some(StreamError::TooLarge)));
}

#[test]
fn a_datagram_has_one_message() {
    let text = format!("\r\n{}trailing", whole(1, "abc"));
    let message = datagram(text.as_bytes()).unwrap();
    assert_eq!(Message::parse(message).unwrap().body(), b"abc");
    for keep_alive in [
        &b""[..],
        b"\r\n",
        b"\r\n\r\n",
        b"\0",
        b"\0\0\0\0",
        b"\0\x01\0\0\x21\x12\xa4\x42",
    ] {
        assert_eq!(datagram(keep_alive), None);
    }
    assert_eq!(datagram(b"jaK"), Some(&b"jaK"[..]));
}

proptest! {
    #[test]
    fn a_stream_gives_what_was_written_however_it_is_cut(
        bodies in proptest::collection::vec("[a-z\r\n]{0,30}", 1..6),
        pieces in proptest::collection::vec(1..400usize, 1..20),
    ) {
        let texts: Vec<String> = bodies.iter().zip(1..).map(|(body, number)| whole(number, body)).collect();
        let (frames, error) = frames(Role::Accepted, texts.concat().as_bytes(), &pieces);
        let expected: Vec<Frame> = texts.iter().map(|text| Frame::Message(text.clone().into_bytes())).collect();
        prop_assert_eq!((frames, error), (expected, None));
    }

    #[test]
    fn octets_of_any_kind_do_no_harm(
        octets in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b'\r'), Just(b'\n'), Just(b':')], 0..400),
        pieces in proptest::collection::vec(1..50usize, 1..9),
    ) {
        let all = frames(Role::Accepted, &octets, &[octets.len()]);
        prop_assert_eq!(frames(Role::Accepted, &octets, &pieces), all);
        let _ = datagram(&octets);
    }
}
