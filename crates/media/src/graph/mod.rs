//! The media graph: sources, routes and sinks, as plain state without sockets or clocks.

mod cursor;
mod evenness;
mod flow;
mod history;
mod inspect;
mod keyframe_cache;
mod numbering;
mod packet;
mod reason;
mod rewritten;
mod selector;
mod sink;
mod source;
mod speech;
mod talk;

pub(crate) use cursor::{Cursor, Next};
pub(crate) use evenness::Evenness;
pub(crate) use flow::Flow;
pub(crate) use history::History;
pub(crate) use inspect::{Inspected, Inspector};
pub(crate) use keyframe_cache::CachedFrames;
pub(crate) use numbering::{Numbering, Sent};
pub(crate) use packet::{Layers, Packet, Part, PictureIds, Targets};
pub use reason::LayerReason;
pub(crate) use rewritten::Rewritten;
pub(crate) use selector::{ENCODINGS, Selection, Selector};
pub(crate) use sink::{Sink, Stamp};
pub(crate) use source::{MessageKind, Messages, SOUND_WINDOW, Source, SourceFormat, SourceKey};
pub use speech::SpeechActivity;
pub(crate) use speech::SpeechMeter;
pub use talk::TalkDetection;
pub(crate) use talk::{TalkChange, TalkDetector, level};
