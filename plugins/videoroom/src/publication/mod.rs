//! What participants send.

mod answer;
mod configure;
mod dummy;
mod forward;
mod keyframes;
mod origin;
mod recording;
mod remote;
mod stream;
mod talking;

use portunus_core::Mid;
use portunus_core::sdp::{CodecName, Kind};

pub(crate) use configure::Configure;
pub(crate) use dummy::{Dummy, DummyStream, placeholder};
pub(crate) use forward::{
    ForwardRequest, Forwarder, Host, MAX_FORWARDERS, PATIENCE, address, port, required_port, srtp,
};
pub(crate) use origin::Origin;
pub(crate) use recording::RecordSettings;
pub(crate) use remote::{Place, Remote, Remotization, hear};
pub(crate) use stream::{ExtensionIds, Stream, medium};

/// What a participant sends.
#[derive(Debug)]
pub(crate) struct Published {
    /// Its place among those whose media is up; none as long as it is not.
    pub(crate) active: Option<u64>,
    pub(crate) e2ee: bool,
    /// One for each m-line.
    pub(crate) streams: Vec<Stream>,
    /// The other servers that it is published on.
    pub(crate) remotizations: Vec<Remotization>,
}

impl Published {
    /// The stream of m-line `mid`.
    pub(crate) fn stream(&self, mid: Mid) -> Option<&Stream> {
        self.streams.iter().find(|stream| stream.mid == mid)
    }

    /// The stream of m-line `mid`.
    pub(crate) fn stream_mut(&mut self, mid: Mid) -> Option<&mut Stream> {
        self.streams.iter_mut().find(|stream| stream.mid == mid)
    }

    /// The streams that carry data.
    pub(crate) fn data(&self) -> impl Iterator<Item = &Stream> {
        let carries = |stream: &&Stream| stream.kind == Kind::Data && !stream.disabled;
        self.streams.iter().filter(carries)
    }

    /// The codec of the first stream of `kind` that has one.
    pub(crate) fn codec(&self, kind: Kind) -> Option<&'static str> {
        let streams = self.streams.iter().filter(|stream| !stream.disabled);
        let mut codecs = streams
            .filter(|stream| stream.kind == kind)
            .filter_map(|stream| stream.codec);
        codecs.next().map(CodecName::name)
    }

    /// The true state, if some audio says how loud it is.
    pub(crate) fn talking(&self) -> Option<bool> {
        let mut heard = self.streams.iter().filter(|stream| stream.has_levels());
        let first = heard.next()?;
        Some(first.talk.talking || heard.any(|stream| stream.talk.talking))
    }
}
