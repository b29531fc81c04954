//! Messages to and from one other node: in order, and none is lost while both run, however often
//! the connection between them is replaced.
//!
//! Each side numbers its frames, keeps them until the other side confirms them, and sends them
//! again on request. A side that cannot do so, or that has lost the other one, begins a new
//! *session*: then both count from 0, and what was agreed in the session before is void on both
//! sides. The higher session counts. All of this is sans-IO.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The most bytes of a message in one frame.
const PIECE: usize = 48 * 1024;
/// The most bytes of a message.
const MAX_MESSAGE: usize = 4 * 1024 * 1024;
/// The most frames, and the most bytes in them, that wait for their confirmation.
const MAX_WAITING: usize = 8_192;
const MAX_WAITING_BYTES: usize = 16 * 1024 * 1024;
/// The frames after which they are confirmed at once.
const CONFIRM_EACH: u64 = 64;
/// The most frames that are sent again at once.
const AGAIN_AT_ONCE: usize = 256;
/// How often a side that is in use says so, and confirms what it has received.
const BEAT: Duration = Duration::from_secs(1);
/// The least time between two requests to send frames again.
const ASK_AGAIN: Duration = Duration::from_millis(200);
/// The time without a frame after which a side that is in use begins anew.
const SILENCE: Duration = Duration::from_secs(10);
/// The bytes before the piece of a message.
const HEAD: usize = 41;

/// A frame cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("it is too short")]
    Short,
    #[error("its kind {0} is unknown")]
    Kind(u8),
    #[error("a message is too long")]
    Long,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The last piece of a message.
    Last,
    /// A piece of a message.
    Piece,
    /// It says how many frames there were, and confirms.
    Beat,
    /// It asks for all frames after the confirmed ones.
    Again,
}

impl Kind {
    const fn byte(self) -> u8 {
        match self {
            Kind::Last => 1,
            Kind::Piece => 2,
            Kind::Beat => 3,
            Kind::Again => 4,
        }
    }

    const fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Kind::Last,
            2 => Kind::Piece,
            3 => Kind::Beat,
            4 => Kind::Again,
            _ => return None,
        })
    }
}

/// The head of a frame.
#[derive(Debug, Clone, Copy)]
struct Head {
    kind: Kind,
    /// The run of the sender's process, and that of the receiver's if the sender knows it, or 0.
    run: u64,
    to: u64,
    session: u64,
    /// The number of a piece. In other frames, the number of the next piece.
    number: u64,
    /// The number of the next piece that the sender expects: those before are confirmed.
    expected: u64,
}

impl Head {
    fn write(self, piece: &[u8]) -> Vec<u8> {
        let mut frame = Vec::with_capacity(HEAD.saturating_add(piece.len()));
        frame.push(self.kind.byte());
        let Head {
            run,
            to,
            session,
            number,
            expected,
            ..
        } = self;
        for number in [run, to, session, number, expected] {
            frame.extend(number.to_be_bytes());
        }
        frame.extend(piece);
        frame
    }

    fn parse(frame: &[u8]) -> Result<(Self, &[u8]), FrameError> {
        let (kind, mut rest) = frame.split_first().ok_or(FrameError::Short)?;
        let kind = Kind::of(*kind).ok_or(FrameError::Kind(*kind))?;
        let mut next = || -> Result<u64, FrameError> {
            let (number, after) = rest.split_first_chunk().ok_or(FrameError::Short)?;
            rest = after;
            Ok(u64::from_be_bytes(*number))
        };
        let head = Head {
            kind,
            run: next()?,
            to: next()?,
            session: next()?,
            number: next()?,
            expected: next()?,
        };
        Ok((head, rest))
    }
}

/// What follows from a frame, or from the time.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Frames to send.
    pub(crate) frames: Vec<Vec<u8>>,
    /// Whether a new session has begun: what was agreed before the messages is void.
    pub(crate) is_void: bool,
    /// The messages that have come.
    pub(crate) messages: Vec<Vec<u8>>,
}

/// The messages to and from another node.
#[derive(Debug)]
pub(crate) struct Pipe {
    run: u64,
    session: u64,
    /// The number of the next piece.
    next: u64,
    /// The last pieces, which are not confirmed.
    waiting: VecDeque<(Kind, Vec<u8>)>,
    waiting_bytes: usize,
    /// The run of the other side, once it is known.
    far_run: Option<u64>,
    /// The number of its next piece.
    expected: u64,
    confirmed: u64,
    /// The pieces of a message whose last one is missing.
    pieces: Vec<u8>,
    heard: Instant,
    beaten: Instant,
    asked: Option<Instant>,
}

impl Pipe {
    /// Returns the pipe to a node with which nothing was agreed yet. `run` is a random number of
    /// this process.
    pub(crate) fn new(run: u64, now: Instant) -> Self {
        Pipe {
            run,
            session: 0,
            next: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            far_run: None,
            expected: 0,
            confirmed: 0,
            pieces: Vec::new(),
            heard: now,
            beaten: now,
            asked: None,
        }
    }

    /// Returns the run of the other side, once it is known.
    pub(crate) fn far_run(&self) -> Option<u64> {
        self.far_run
    }

    /// Sends a message. If too many wait, the outcome is void, and the message is lost.
    pub(crate) fn send(&mut self, message: &[u8], now: Instant) -> Outcome {
        let mut outcome = Outcome::default();
        if self.waiting.is_empty() {
            // Nothing was expected of the other side meanwhile.
            self.heard = now;
        }
        let mut rest = message;
        loop {
            let (piece, after) = rest.split_at(rest.len().min(PIECE));
            let kind = match after.is_empty() {
                true => Kind::Last,
                false => Kind::Piece,
            };
            let number = self.next;
            self.next = self.next.saturating_add(1);
            self.waiting_bytes = self.waiting_bytes.saturating_add(piece.len());
            outcome.frames.push(self.head(kind, number).write(piece));
            self.waiting.push_back((kind, piece.to_vec()));
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        let is_full = self.waiting.len() > MAX_WAITING || self.waiting_bytes > MAX_WAITING_BYTES;
        if is_full || message.len() > MAX_MESSAGE {
            self.begin_anew(now);
            return Outcome {
                is_void: true,
                ..Outcome::default()
            };
        }
        outcome
    }

    /// Takes a frame of the other side.
    pub(crate) fn take(&mut self, frame: &[u8], now: Instant) -> Result<Outcome, FrameError> {
        let (head, piece) = Head::parse(frame)?;
        let mut outcome = Outcome::default();
        let far_run = self.far_run.replace(head.run);
        if far_run.is_some_and(|run| run != head.run) {
            // It knows nothing of the session.
            self.begin_session(self.session.max(head.session).saturating_add(1), now);
            outcome.is_void = true;
        }
        // It may have been sent to the process before this one.
        let is_for_another = head.to != 0 && head.to != self.run;
        if head.session > self.session && !is_for_another {
            outcome.is_void |= self.adopt(head.session, now, &mut outcome.frames);
        }
        self.heard = now;
        if head.session < self.session || is_for_another {
            self.beat(now, &mut outcome);
            return Ok(outcome);
        }
        self.confirm(head.expected);
        if head.kind == Kind::Again {
            self.send_again(&mut outcome.frames);
        }
        match head.kind {
            Kind::Again | Kind::Beat => {
                if head.number > self.expected {
                    self.ask_again(now, &mut outcome);
                }
            }
            Kind::Last | Kind::Piece if head.number > self.expected => {
                self.ask_again(now, &mut outcome);
            }
            // It came before.
            Kind::Last | Kind::Piece if head.number < self.expected => {}
            Kind::Last | Kind::Piece => {
                self.expected = self.expected.saturating_add(1);
                self.asked = None;
                if self.pieces.len().saturating_add(piece.len()) > MAX_MESSAGE {
                    self.pieces.clear();
                    return Err(FrameError::Long);
                }
                self.pieces.extend_from_slice(piece);
                if head.kind == Kind::Last {
                    outcome.messages.push(std::mem::take(&mut self.pieces));
                }
                if self.expected.saturating_sub(self.confirmed) >= CONFIRM_EACH {
                    self.beat(now, &mut outcome);
                }
            }
        }
        Ok(outcome)
    }

    /// Does what is due. `is_used`: something is agreed with the other side, which therefore has
    /// to be heard now and then.
    pub(crate) fn tick(&mut self, is_used: bool, now: Instant) -> Outcome {
        let mut outcome = Outcome::default();
        let is_awaited = is_used || !self.waiting.is_empty();
        if is_awaited && now.saturating_duration_since(self.heard) >= SILENCE {
            self.begin_anew(now);
            outcome.is_void = true;
            return outcome;
        }
        let is_due = now.saturating_duration_since(self.beaten) >= BEAT;
        if is_due && (is_awaited || self.expected > self.confirmed) {
            self.beat(now, &mut outcome);
        }
        if !is_awaited {
            self.heard = now;
        }
        outcome
    }

    /// Begins a new session: what was agreed before is void.
    pub(crate) fn begin_anew(&mut self, now: Instant) {
        self.begin_session(self.session.saturating_add(1), now);
    }

    fn begin_session(&mut self, session: u64, now: Instant) {
        self.session = session;
        self.next = 0;
        self.waiting.clear();
        self.waiting_bytes = 0;
        (self.expected, self.confirmed) = (0, 0);
        self.pieces.clear();
        self.asked = None;
        self.heard = now;
    }

    /// Takes over the session that the other side has begun. Returns whether something is void.
    fn adopt(&mut self, session: u64, now: Instant, frames: &mut Vec<Vec<u8>>) -> bool {
        let is_fresh = self.expected == 0 && self.first_waiting() == 0;
        if !is_fresh {
            self.begin_session(session, now);
            return true;
        }
        // Nothing was agreed: what waits is sent again, in that session.
        self.session = session;
        self.send_again(frames);
        false
    }

    fn head(&self, kind: Kind, number: u64) -> Head {
        Head {
            kind,
            run: self.run,
            to: self.far_run.unwrap_or_default(),
            session: self.session,
            number,
            expected: self.expected,
        }
    }

    fn beat(&mut self, now: Instant, outcome: &mut Outcome) {
        (self.beaten, self.confirmed) = (now, self.expected);
        outcome
            .frames
            .push(self.head(Kind::Beat, self.next).write(&[]));
    }

    fn ask_again(&mut self, now: Instant, outcome: &mut Outcome) {
        let is_asked = |at: Instant| now.saturating_duration_since(at) < ASK_AGAIN;
        if !self.asked.is_some_and(is_asked) {
            self.asked = Some(now);
            self.confirmed = self.expected;
            let again = self.head(Kind::Again, self.next);
            outcome.frames.push(again.write(&[]));
        }
    }

    fn confirm(&mut self, expected: u64) {
        while self.first_waiting() < expected
            && let Some((_, piece)) = self.waiting.pop_front()
        {
            self.waiting_bytes = self.waiting_bytes.saturating_sub(piece.len());
        }
    }

    fn first_waiting(&self) -> u64 {
        self.next.saturating_sub(self.waiting.len() as u64)
    }

    fn send_again(&self, frames: &mut Vec<Vec<u8>>) {
        let numbers = self.first_waiting()..;
        for (number, (kind, piece)) in numbers.zip(&self.waiting).take(AGAIN_AT_ONCE) {
            frames.push(self.head(*kind, number).write(piece));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use super::*;

    /// Two sides, and the frames on their way from each.
    struct Pair {
        sides: [Pipe; 2],
        sent: [VecDeque<Vec<u8>>; 2],
        messages: [Vec<Vec<u8>>; 2],
        voids: [usize; 2],
        now: Instant,
    }

    impl Pair {
        fn new() -> Self {
            let now = Instant::now();
            Pair {
                sides: [1, 2].map(|run| Pipe::new(run, now)),
                sent: Default::default(),
                messages: Default::default(),
                voids: [0; 2],
                now,
            }
        }

        fn note(&mut self, side: usize, outcome: Outcome) {
            self.sent[side].extend(outcome.frames);
            self.voids[side] += usize::from(outcome.is_void);
            self.messages[side].extend(outcome.messages);
        }

        fn send(&mut self, side: usize, message: &[u8]) {
            let outcome = self.sides[side].send(message, self.now);
            self.note(side, outcome);
        }

        fn deliver(&mut self) {
            while let Some((side, frame)) =
                (0..2).find_map(|side| Some((side, self.sent[side].pop_front()?)))
            {
                let outcome = self.sides[1 - side].take(&frame, self.now).unwrap();
                self.note(1 - side, outcome);
            }
        }

        fn lose(&mut self) {
            self.sent = Default::default();
        }

        fn pass(&mut self, seconds: u64) {
            for _ in 0..seconds {
                self.now += Duration::from_secs(1);
                for side in 0..2 {
                    let outcome = self.sides[side].tick(true, self.now);
                    self.note(side, outcome);
                }
                self.deliver();
            }
        }
    }

    #[test]
    fn messages_come_in_order_and_once_though_frames_get_lost() {
        let mut pair = Pair::new();
        pair.send(0, b"one");
        pair.deliver();
        pair.send(0, b"two");
        pair.send(1, b"back");
        pair.lose();
        pair.send(0, b"three");
        pair.deliver();
        assert_eq!(
            pair.messages[1],
            [b"one".to_vec(), b"two".to_vec(), b"three".to_vec()]
        );
        // Nothing follows the lost message, and it comes all the same.
        pair.pass(2);
        assert_eq!(pair.messages[0], [b"back".to_vec()]);
        assert!(pair.sides.iter().all(|side| side.waiting.is_empty()));
        assert_eq!(pair.voids, [0, 0]);
    }

    #[test]
    fn a_long_message_comes_whole_and_one_that_is_too_long_ends_what_was_agreed() {
        let mut pair = Pair::new();
        let long = vec![7; 3 * PIECE + 1];
        pair.send(0, &long);
        assert_eq!(pair.sent[0].len(), 4);
        pair.deliver();
        assert_eq!(pair.messages[1], [long]);
        pair.send(0, &vec![7; MAX_MESSAGE + 1]);
        assert_eq!(pair.voids, [1, 0]);
        pair.send(0, b"anew");
        // It was sent before the other side knew of that.
        pair.send(1, b"void");
        pair.deliver();
        assert_eq!((pair.voids, pair.messages[1].len()), ([1, 1], 2));
        assert!(pair.messages[0].is_empty());
        pair.send(1, b"after");
        pair.deliver();
        assert_eq!(pair.messages[0], [b"after".to_vec()]);
    }

    #[test]
    fn a_side_that_starts_anew_is_noticed_once_and_what_it_says_first_counts() {
        let mut pair = Pair::new();
        for n in 0..3 {
            pair.send(n % 2, b"before");
        }
        pair.deliver();
        pair.pass(1);
        pair.sides[0] = Pipe::new(3, pair.now);
        pair.messages = Default::default();
        // The other side does not know it yet.
        pair.send(1, b"void");
        pair.send(0, b"hello");
        pair.deliver();
        pair.pass(2);
        assert_eq!(pair.voids, [0, 1]);
        assert_eq!(pair.messages[1], [b"hello".to_vec()]);
        pair.send(0, b"after");
        pair.send(1, b"after");
        pair.deliver();
        assert_eq!(pair.messages[0], [b"after".to_vec()]);
        assert_eq!(pair.messages[1].len(), 2);
        assert_eq!(pair.voids, [0, 1]);
    }

    #[test]
    fn both_may_begin_anew_in_the_same_moment() {
        let mut pair = Pair::new();
        pair.send(0, b"before");
        pair.deliver();
        for side in &mut pair.sides {
            side.begin_anew(pair.now);
        }
        pair.send(0, b"one");
        pair.send(1, b"two");
        pair.deliver();
        assert_eq!(pair.voids, [0, 0], "each has begun by itself");
        assert_eq!(pair.messages[0], [b"two".to_vec()]);
        assert_eq!(pair.messages[1].last(), Some(&b"one".to_vec()));
    }

    #[test]
    fn a_silent_side_ends_what_was_agreed() {
        let mut pair = Pair::new();
        pair.send(0, b"one");
        pair.deliver();
        for _ in 0..9 {
            pair.now += Duration::from_secs(1);
            let outcome = pair.sides[0].tick(true, pair.now);
            assert!(!outcome.is_void);
        }
        pair.now += Duration::from_secs(2);
        assert!(pair.sides[0].tick(true, pair.now).is_void);
        // Unused, it may be silent.
        for _ in 0..100 {
            pair.now += Duration::from_secs(1);
            assert!(!pair.sides[1].tick(false, pair.now).is_void);
        }
    }

    #[test]
    fn malformed_frames_are_refused() {
        let mut pipe = Pipe::new(1, Instant::now());
        assert_eq!(
            pipe.take(&[], Instant::now()).err(),
            Some(FrameError::Short)
        );
        let unknown = pipe.take(&[9; 60], Instant::now());
        assert_eq!(unknown.err(), Some(FrameError::Kind(9)));
        let short = pipe.take(&[1; HEAD - 1], Instant::now());
        assert_eq!(short.err(), Some(FrameError::Short));
    }
}
