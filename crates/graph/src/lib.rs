//! The media graph: sources, routes and sinks as plain state without sockets, threads and clocks.
//!
//! [`Inspector`] looks into a packet once, [`Source`] keeps it, [`Selector`] decides for each sink
//! whether it is relayed, [`Numbering`] gives it the sink's numbers, and [`Sink`] writes its
//! header. `portunus-media` has the workers that do so.

mod cursor;
mod demand;
mod dependency_descriptor;
mod evenness;
mod flow;
mod format;
mod history;
mod ids;
mod inspector;
mod keyframe_cache;
mod keyframe_requests;
mod layer_report;
mod layers;
mod lowest;
mod numbering;
mod options;
mod packet;
mod selector;
mod shared_clock;
mod sink;
mod source;
mod speech_meter;
mod talk_detector;

pub use cursor::{Cursor, Next};
pub use demand::Demand;
pub use dependency_descriptor::RewrittenDescriptor;
pub use evenness::Evenness;
pub use flow::Flow;
pub use format::{MessageKind, Messages, SourceFormat, SourceKey};
pub use history::History;
pub use ids::{IngestId, PeerId, RouteId, SourceRef, TrackRef};
pub use inspector::Inspector;
pub use keyframe_cache::CachedFrames;
pub use keyframe_requests::KeyframeRequests;
pub use layer_report::{Layer, LayerReason, SentLayers};
pub use layers::{ENCODINGS, Inspected, Layers, Part, PictureIds, Targets};
pub use lowest::Lowest;
pub use numbering::{Numbering, Sent};
pub use options::{KeyframeCache, KeyframeInterval, Priority, RouteOptions, layer_number};
pub use packet::Packet;
pub use selector::{Selection, Selector};
pub use shared_clock::SharedClock;
pub use sink::{Sink, Stamp};
pub use source::{SOUND_WINDOW, Source};
pub use speech_meter::{SpeechActivity, SpeechMeter};
pub use talk_detector::{TalkChange, TalkDetection, TalkDetector, level};
