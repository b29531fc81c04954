//! The plugin's requests, and what each reaches beyond the call.

use portunus_core::{Fields, Reach, Requests, Right, Rights};
use serde_json::Value;

/// All of them.
pub const REQUESTS: Requests = Requests(&[
    ("list", Reach::Call),
    ("info", Reach::Call),
    ("create", Reach::Said(create)),
    ("edit", Reach::Said(permanent)),
    ("destroy", Reach::Said(permanent)),
    ("enable", Reach::Call),
    ("disable", Reach::Call),
    ("recording", Reach::Beyond(Right::Record)),
    ("kick_all", Reach::Call),
    ("watch", Reach::Call),
    ("start", Reach::Call),
    ("pause", Reach::Call),
    ("stop", Reach::Call),
    ("configure", Reach::Call),
    ("switch", Reach::Call),
    ("seek", Reach::Call),
    ("publish", Reach::Call),
    ("unpublish", Reach::Call),
]);

/// What outlives the server.
fn permanent(fields: Fields<'_>) -> Rights {
    let permanent = fields.boolean("permanent") == Ok(Some(true));
    Rights::if_so(permanent, Right::Create)
}

/// RTP to ports of the server, and what a client publishes, are for all: but not on an interface of one's choice, nor from
/// a multicast group, which is a look into the server's network.
fn create(fields: Fields<'_>) -> Rights {
    let kind = fields.string("type").ok().flatten().unwrap_or_default();
    let kind = kind.to_ascii_lowercase();
    let beyond = match kind.as_str() {
        "rtp" => names_network(fields),
        "whip" => false,
        _ => ["live", "ondemand", "rtsp"].contains(&kind.as_str()),
    };
    Rights::if_so(beyond, Right::Create).and(permanent(fields))
}

/// Whether a member says which network media comes from: `mcast` or `iface` of an entry of `media`, or as the older form
/// has it, with the kind of media before it.
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
    #![allow(clippy::unwrap_used)]
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
