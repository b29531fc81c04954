//! VP8 (RFC 7741): consecutive partitions.

use super::{Facts, Form};
use crate::codec::Vp8;

#[derive(Debug, Default)]
pub(super) struct Vp8Form {
    /// The properties in the frame's first payload, once it has arrived.
    facts: Option<Facts>,
}

impl Form for Vp8Form {
    fn begins(&mut self, payload: &[u8], _after_gap: bool) -> bool {
        self.begins_another(payload)
    }

    fn begins_another(&self, payload: &[u8]) -> bool {
        Vp8::parse(payload).is_ok_and(|descriptor| descriptor.starts_frame())
    }

    fn append(&mut self, payload: &[u8], data: &mut Vec<u8>) -> Option<()> {
        let descriptor = Vp8::parse(payload).ok()?;
        self.facts.get_or_insert(Facts {
            keyframe: descriptor.is_keyframe(payload),
            droppable: descriptor.non_reference,
        });
        data.extend_from_slice(payload.get(descriptor.descriptor_len()..)?);
        Some(())
    }

    fn finish(&mut self, _data: &mut Vec<u8>) -> Option<Facts> {
        self.facts
    }

    fn droppable(&self) -> bool {
        self.facts.is_some_and(|facts| facts.droppable)
    }

    fn clear(&mut self) {
        self.facts = None;
    }
}
