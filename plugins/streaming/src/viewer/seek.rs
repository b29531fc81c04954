//! `seek`: another position in the viewer's own file.

use std::time::Duration;

use portunus_core::{Fields, Message};
use serde::Deserialize;
use serde_json::json;

use super::{Answer, Session, Viewer};
use crate::mountpoint::Mountpoint;
use crate::refusal::Refusal;

#[derive(Deserialize)]
struct Seek {
    /// Seconds from the start.
    position: f64,
}

impl Viewer {
    pub(super) fn seek(&self, message: &Message) -> Result<Answer, Refusal> {
        let mut session = self.session();
        let Session::Watching(watching) = &mut *session else {
            return Err(Refusal::NotWatching);
        };
        let Seek { position: seconds } = Fields(&message.body).read()?;
        let position = position(seconds, &watching.mountpoint)?;
        match &watching.playing {
            Some(playing) if !playing.seek(position) => {
                return Err(Refusal::State("The file is not played any more"));
            }
            Some(_) => {}
            // It begins there once the PeerConnection is up.
            None => watching.begins_at = Some(position),
        }
        Ok((json!({ "status": "seeking", "position": seconds }), None))
    }
}

/// Returns a position in the file of `mountpoint`.
fn position(seconds: f64, mountpoint: &Mountpoint) -> Result<Duration, Refusal> {
    if !mountpoint.is_on_demand() {
        let kind = mountpoint.spec.source.name();
        return Err(Refusal::Invalid(format!(
            "A viewer can seek in mountpoints of type ondemand; this one is of type {kind}"
        )));
    }
    let position = Duration::try_from_secs_f64(seconds)
        .map_err(|_| Refusal::element("position", "seconds from the start, 0 or more"))?;
    match mountpoint.duration() {
        Some(duration) if position > duration => {
            let lasts = format!("the file lasts {:.3} s", duration.as_secs_f64());
            Err(Refusal::element("position", lasts))
        }
        _ => Ok(position),
    }
}
