//! The plugin's requests, and the rights that they need.

use portunus_core::{Asked, Fields, Right, Rights, requests};
use serde_json::Value;

use crate::refusal::Refusal;

requests! {
    /// The requests of clients. Administrators can make those that a reply answers.
    pub enum Request {
        List = "list": Reply, Nothing;
        Info = "info": Reply, Nothing;
        Create = "create": Reply, Depends(create);
        Edit = "edit": Reply, Depends(permanent);
        Destroy = "destroy": Reply, Depends(permanent);
        Enable = "enable": Reply, Nothing;
        Disable = "disable": Reply, Nothing;
        Recording = "recording": Reply, Right(Right::Record);
        KickAll = "kick_all": Reply, Nothing;
        Watch = "watch": Event, Nothing, Begins;
        Start = "start": Event, Nothing;
        Pause = "pause": Event, Nothing;
        Stop = "stop": Event, Nothing;
        Configure = "configure": Event, Nothing;
        Switch = "switch": Event, Nothing;
        Seek = "seek": Event, Nothing;
        Publish = "publish": Event, Nothing, Begins;
        Unpublish = "unpublish": Event, Nothing;
    }
}

impl Request {
    /// Returns the request that a body names.
    pub(crate) fn asked(fields: Fields<'_>) -> Result<Asked<Self>, Refusal> {
        let name = fields.required::<&str>("request")?;
        Asked::named(name).ok_or_else(|| Refusal::UnknownRequest(name.to_ascii_lowercase()))
    }
}

/// Returns the right for a permanent change.
fn permanent(fields: Fields<'_>) -> Rights {
    let permanent = fields.member("permanent") == Ok(Some(true));
    Rights::if_so(permanent, Right::Create)
}

/// Returns the rights for `create`. Anybody may use RTP ports and publish, but not choose an
/// interface or a multicast group, which would inspect the server's network.
fn create(fields: Fields<'_>) -> Rights {
    let kind: Option<&str> = fields.member("type").ok().flatten();
    let kind = kind.unwrap_or_default().to_ascii_lowercase();
    let beyond = match kind.as_str() {
        "rtp" => names_network(fields),
        "whip" => false,
        _ => ["live", "ondemand", "rtsp"].contains(&kind.as_str()),
    };
    Rights::if_so(beyond, Right::Create).and(permanent(fields))
}

/// Returns whether a member names a network: `mcast` or `iface` in an entry of `media`, or in the
/// older form with the kind of media in front.
fn names_network(fields: Fields<'_>) -> bool {
    let is_network = |name: &str| name.ends_with("mcast") || name.ends_with("iface");
    let media = fields.0.get("media").and_then(|media| media.as_array());
    let entries = media.into_iter().flatten().filter_map(|it| it.as_object());
    let mut all = entries.chain([fields.0]);
    let named = |(name, value): (&String, &Value)| is_network(name) && value.as_str() != Some("");
    all.any(|members| members.iter().any(named))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_mountpoint_needs_is_read_from_its_description() {
        let needs = |body: Value| create(Fields(body.as_object().unwrap()));
        for body in [
            json!({}),
            json!({ "type": 1 }),
            json!({ "type": "rtp", "media": [{ "type": "audio", "port": 0 }] }),
            json!({ "type": "rtp", "media": "iface" }),
            json!({ "type": "rtp", "media": [{ "iface": "", "mcast": "" }] }),
            json!({ "type": "whip", "media": [] }),
            json!({ "type": "rtp", "permanent": false }),
            json!({ "type": "file" }),
        ] {
            assert_eq!(needs(body.clone()), Rights::NONE, "{body}");
        }
        for body in [
            json!({ "type": "live" }),
            json!({ "type": "OnDemand", "filename": "a" }),
            json!({ "type": "rtsp" }),
            json!({ "type": "rtp", "permanent": true }),
            json!({ "type": "rtp", "media": [{ "port": 0 }, { "iface": "lo" }] }),
            json!({ "type": "rtp", "media": [{ "mcast": "239.1.1.1" }] }),
            json!({ "type": "rtp", "audiomcast": "239.1.1.1" }),
            json!({ "type": "rtp", "videoiface": "lo" }),
        ] {
            assert_eq!(needs(body.clone()), Right::Create.into(), "{body}");
        }
    }
}
