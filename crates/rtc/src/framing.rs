//! Datagrams in a TCP connection (RFC 4571): each follows its length of two bytes.

use std::mem;

/// Bytes before each datagram.
pub const FRAME_HEAD: usize = 2;

/// A frame exceeds the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {len} bytes, where at most {most} are taken")]
pub struct FrameTooLong {
    /// Its length, in bytes.
    pub len: usize,
    /// The limit, in bytes.
    pub most: usize,
}

/// Returns the head of a datagram of `len` bytes, or `None` if it is too long for a frame.
pub fn frame_head(len: usize) -> Option<[u8; FRAME_HEAD]> {
    Some(u16::try_from(len).ok()?.to_be_bytes())
}

/// Splits the bytes of a connection into datagrams, in whatever pieces they arrive.
///
/// It keeps at most one incomplete frame, and holds no memory without one.
#[derive(Debug)]
pub struct Deframer {
    /// The start of a frame.
    partial: Vec<u8>,
    most: usize,
}

impl Deframer {
    /// Accepts frames of up to `most` bytes.
    pub const fn new(most: usize) -> Self {
        Self {
            partial: Vec::new(),
            most,
        }
    }

    /// Sets the limit from the next frame on, in bytes.
    pub fn set_most(&mut self, most: usize) {
        self.most = most;
    }

    /// Takes the next frame from `input`, and advances `input`. Returns `None` if the frame is
    /// still incomplete. A frame in one piece is lent from `input`, any other is put into `whole`.
    /// Empty frames are skipped (RFC 4571 section 2).
    ///
    /// After an error, the start of the next frame is unknown, so the connection cannot be used any
    /// more.
    pub fn next<'frame, 'input: 'frame>(
        &mut self,
        input: &mut &'input mut [u8],
        whole: &'frame mut Vec<u8>,
    ) -> Result<Option<&'frame mut [u8]>, FrameTooLong> {
        loop {
            if self.partial.is_empty()
                && let Some((head, _)) = input.split_first_chunk::<FRAME_HEAD>()
            {
                let len = self.check(*head)?;
                let end = FRAME_HEAD.saturating_add(len);
                if input.len() >= end {
                    let (frame, rest) = mem::take(input).split_at_mut(end);
                    *input = rest;
                    if len == 0 {
                        continue;
                    }
                    return Ok(frame.get_mut(FRAME_HEAD..));
                }
            }
            let len = match self.partial.first_chunk::<FRAME_HEAD>() {
                Some(head) => self.check(*head)?,
                None => {
                    self.move_to(FRAME_HEAD, input);
                    if self.partial.len() < FRAME_HEAD {
                        return Ok(None);
                    }
                    continue;
                }
            };
            let end = FRAME_HEAD.saturating_add(len);
            self.move_to(end, input);
            if self.partial.len() < end {
                return Ok(None);
            }
            *whole = mem::take(&mut self.partial);
            if len == 0 {
                continue;
            }
            return Ok(whole.get_mut(FRAME_HEAD..));
        }
    }

    /// Returns the bytes that it keeps.
    pub fn kept(&self) -> usize {
        self.partial.len()
    }

    fn check(&self, head: [u8; FRAME_HEAD]) -> Result<usize, FrameTooLong> {
        let (len, most) = (usize::from(u16::from_be_bytes(head)), self.most);
        match len <= most {
            true => Ok(len),
            false => Err(FrameTooLong { len, most }),
        }
    }

    /// Moves input until `len` bytes are kept.
    fn move_to(&mut self, len: usize, input: &mut &mut [u8]) {
        let missing = len.saturating_sub(self.partial.len()).min(input.len());
        let (more, rest) = mem::take(input).split_at_mut(missing);
        self.partial.extend_from_slice(more);
        *input = rest;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;
    use proptest::prelude::*;

    /// Returns the datagrams in the pieces.
    fn deframed(deframer: &mut Deframer, pieces: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, FrameTooLong> {
        let mut datagrams = Vec::new();
        for piece in pieces {
            let mut piece = piece.clone();
            let mut input = piece.as_mut_slice();
            let mut whole = Vec::new();
            while let Some(frame) = deframer.next(&mut input, &mut whole)? {
                datagrams.push(frame.to_vec());
            }
            assert!(input.is_empty());
        }
        Ok(datagrams)
    }

    fn framed(datagrams: &[Vec<u8>]) -> Vec<u8> {
        let framed = |datagram: &Vec<u8>| {
            let head = frame_head(datagram.len()).unwrap();
            [&head[..], datagram].concat()
        };
        datagrams.iter().flat_map(framed).collect()
    }

    #[test]
    fn one_byte_at_a_time() {
        let datagrams = vec![vec![1, 2, 3], vec![4], vec![5; 300]];
        let pieces: Vec<Vec<u8>> = framed(&datagrams).chunks(1).map(<[u8]>::to_vec).collect();
        let mut deframer = Deframer::new(300);
        assert_eq!(deframed(&mut deframer, &pieces), Ok(datagrams));
        assert_eq!(deframer.kept(), 0);
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused_before_it_is_kept() {
        for piece in [vec![vec![0, 11, 0]], vec![vec![0], vec![11], vec![0]]] {
            let mut deframer = Deframer::new(10);
            let error = deframed(&mut deframer, &piece).unwrap_err();
            assert_eq!(error, FrameTooLong { len: 11, most: 10 });
            assert!(deframer.kept() <= FRAME_HEAD);
            deframer.set_most(11);
            let longer = [framed(&[vec![7; 11]])];
            assert_eq!(deframed(&mut Deframer::new(11), &longer).unwrap().len(), 1);
        }
    }

    #[test]
    fn a_frame_holds_no_more_than_its_length_can_say() {
        assert_eq!(frame_head(65_535), Some([255, 255]));
        assert_eq!(frame_head(65_536), None);
    }

    proptest! {
        /// The result does not depend on the pieces.
        #[test]
        fn the_cut_makes_no_difference(
            datagrams in proptest::collection::vec(
                proptest::collection::vec(any::<u8>(), 0..400), 0..12),
            cuts in proptest::collection::vec(0_usize..4_000, 0..20),
        ) {
            let stream = framed(&datagrams);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let pieces = cuts.iter().zip(cuts.iter().skip(1));
            let pieces: Vec<Vec<u8>> = pieces
                .map(|(from, to)| stream.get(*from..*to).unwrap().to_vec())
                .collect();
            let mut deframer = Deframer::new(400);
            let sent: Vec<Vec<u8>> = datagrams.into_iter().filter(|d| !d.is_empty()).collect();
            prop_assert_eq!(deframed(&mut deframer, &pieces), Ok(sent));
            prop_assert_eq!(deframer.kept(), 0);
        }

        /// At most one frame is kept, whatever the input.
        #[test]
        fn anything_may_come(
            pieces in proptest::collection::vec(
                proptest::collection::vec(any::<u8>(), 0..300), 0..20),
        ) {
            let mut deframer = Deframer::new(10_000);
            let _ = deframed(&mut deframer, &pieces);
            prop_assert!(deframer.kept() <= FRAME_HEAD + 10_000);
        }
    }
}
