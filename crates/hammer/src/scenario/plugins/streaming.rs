//! Mountpoints of the streaming plugin, created for a run and destroyed after it.

use std::net::{IpAddr, SocketAddr};

use serde_json::{Value, json};

use crate::client::{ClientError, Connection, Handle, Session, plugin_data};
use crate::source::{Destination, VideoCodec};
use crate::traffic::Traffic;

/// The plugin's name.
pub(in crate::scenario) const STREAMING: &str = "janus.plugin.streaming";

/// A created mountpoint.
#[derive(Debug)]
pub(in crate::scenario) struct Mountpoint {
    pub(in crate::scenario) id: Value,
    pub(in crate::scenario) destination: Destination,
}

/// The session that created mountpoints.
#[derive(Debug)]
pub(in crate::scenario) struct Maker {
    session: Session,
    handle: Handle,
    admin_key: Option<String>,
    made: Vec<Value>,
}

impl Maker {
    pub(in crate::scenario) async fn new(
        connection: &Connection,
        admin_key: Option<String>,
    ) -> Result<Self, ClientError> {
        let session = connection.create().await?;
        let handle = session.attach(STREAMING).await?;
        Ok(Self {
            session,
            handle,
            admin_key,
            made: Vec::new(),
        })
    }

    /// Creates a mountpoint for `traffic` with ports on the server's address `host`.
    pub(in crate::scenario) async fn make(
        &mut self,
        traffic: &Traffic,
        codec: VideoCodec,
        host: IpAddr,
        options: &serde_json::Map<String, Value>,
    ) -> Result<Mountpoint, ClientError> {
        let mut media = Vec::new();
        if traffic.audio_bps > 0 {
            media.push(
                json!({ "type": "audio", "mid": "a", "port": 0, "pt": 111, "codec": "opus" }),
            );
        }
        if traffic.video_bps > 0 {
            let mut video =
                json!({ "type": "video", "mid": "v", "port": 0, "pt": 96, "codec": codec.name() });
            if let (Some(fmtp), Some(video)) = (codec.fmtp(), video.as_object_mut()) {
                video.insert("fmtp".to_owned(), fmtp.into());
            }
            media.push(video);
        }
        let mut body = json!({
            "request": "create", "type": "rtp", "description": "portunus-hammer", "media": media,
        });
        if let Some(body) = body.as_object_mut() {
            body.extend(options.clone());
            body.extend(
                self.admin_key
                    .iter()
                    .map(|key| ("admin_key".to_owned(), key.as_str().into())),
            );
        }
        let reply = self.handle.message(body, None).await?;
        let stream = plugin_data(&reply).get("stream").unwrap_or(&Value::Null);
        let missing = |missing| ClientError::Malformed {
            request: "create".to_owned(),
            missing,
        };
        let id = stream.get("id").cloned().ok_or(missing("id"))?;
        self.made.push(id.clone());
        let port = |kind: &str| port_of(stream, kind).map(|port| SocketAddr::new(host, port));
        let destination = Destination {
            video: port("video"),
            audio: port("audio"),
        };
        if (traffic.video_bps > 0 && destination.video.is_none())
            || (traffic.audio_bps > 0 && destination.audio.is_none())
        {
            return Err(missing("port"));
        }
        Ok(Mountpoint { id, destination })
    }

    /// Destroys all mountpoints.
    pub(in crate::scenario) async fn finish(self) {
        for id in &self.made {
            // The run is over. Mountpoints that remain are the server's to keep.
            let _ = self
                .handle
                .message(json!({ "request": "destroy", "id": id }), None)
                .await;
        }
        let _ = self.session.destroy().await;
    }
}

/// Returns the port for a kind of media from the reply to `create`.
fn port_of(stream: &Value, kind: &str) -> Option<u16> {
    let ports = stream.get("ports").and_then(Value::as_array);
    let listed = ports.into_iter().flatten().find_map(|entry| {
        (entry.get("type")?.as_str()? == kind).then(|| entry.get("port")?.as_u64())?
    });
    let legacy = || stream.get(format!("{kind}_port"))?.as_u64();
    u16::try_from(listed.or_else(legacy)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_found_in_both_forms() {
        let new = json!({ "ports": [{ "type": "audio", "port": 5 }, { "type": "video", "mid": "v", "port": 7 }] });
        assert_eq!(
            (port_of(&new, "video"), port_of(&new, "audio")),
            (Some(7), Some(5))
        );
        assert_eq!(port_of(&json!({ "video_port": 9 }), "video"), Some(9));
        assert_eq!(
            port_of(
                &json!({ "ports": [{ "type": "video", "port": 70_000 }] }),
                "video"
            ),
            None
        );
    }
}
