//! The parameters of a join: the query of `/rtc`, or the join request of `/rtc/v1`.

use std::collections::HashMap;
use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use flate2::read::GzDecoder;
use livekit_protocol::{
    AddTrackRequest, ClientInfo, JoinRequest, SessionDescription, SyncState, WrappedJoinRequest,
    client_info, wrapped_join_request,
};
use prost::Message;

/// The longest join request after inflation, in bytes.
const MAX_JOIN_REQUEST: usize = 1 << 20;

/// The parameters of a join.
#[derive(Debug, Clone, Default)]
pub struct JoinParameters {
    /// Whether media to and from the client share one PeerConnection.
    pub single: bool,
    /// The client's program.
    pub client: ClientInfo,
    /// Whether it gets all tracks unasked.
    pub auto_subscribe: bool,
    /// Whether video to it may pause. `None` means as the configuration says.
    pub allow_pause: Option<bool>,
    /// Whether it gets all data tracks unasked.
    pub auto_data: bool,
    /// Whether it resumes a session.
    pub reconnect: bool,
    /// The session that it resumes.
    pub sid: String,
    /// Attributes to set besides those of the token.
    pub attributes: HashMap<String, String>,
    /// Replaces the metadata of the token, unless empty.
    pub metadata: String,
    /// The suffix of a second connection that only publishes.
    pub publish: Option<String>,
    /// The tracks that it will publish.
    pub add_tracks: Vec<AddTrackRequest>,
    /// Its first offer.
    pub offer: Option<SessionDescription>,
    /// Its state when it resumes.
    pub sync_state: Option<SyncState>,
}

/// The reason why the parameters of a join are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParametersError {
    /// `/rtc/v1` has no `join_request`.
    #[error("join_request is required")]
    Missing,
    /// It is not base64.
    #[error("cannot base64 decode wrapped join request")]
    Base64,
    /// It is not protobuf.
    #[error("cannot unmarshal join request")]
    Protobuf,
    /// It cannot be inflated, or is too long.
    #[error("cannot read decompressed join request")]
    Compression,
    /// The attributes are not base64 of a JSON object of texts.
    #[error("cannot decode attributes")]
    Attributes,
}

impl JoinParameters {
    /// Reads a query. `v1` has its parameters in a join request.
    pub fn read(query: &str, v1: bool) -> Result<Self, ParametersError> {
        let pairs = form_urlencoded::parse(query.as_bytes());
        let values: HashMap<String, String> = pairs.into_owned().collect();
        let get = |name: &str| values.get(name).map(String::as_str);
        match get("join_request").filter(|text| !text.is_empty()) {
            Some(text) => Self::of_request(join_request(text)?),
            None if v1 => Err(ParametersError::Missing),
            None => Self::of_query(get),
        }
    }

    fn of_request(request: JoinRequest) -> Result<Self, ParametersError> {
        let settings = request.connection_settings.unwrap_or_default();
        Ok(JoinParameters {
            single: true,
            client: request.client_info.unwrap_or_default(),
            auto_subscribe: settings.auto_subscribe,
            allow_pause: settings.subscriber_allow_pause,
            auto_data: settings.auto_subscribe_data_track.unwrap_or_default(),
            reconnect: request.reconnect,
            sid: request.participant_sid,
            attributes: request.participant_attributes,
            metadata: request.metadata,
            publish: None,
            add_tracks: request.add_track_requests,
            offer: request.publisher_offer,
            sync_state: request.sync_state,
        })
    }

    fn of_query<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Result<Self, ParametersError> {
        let is_true = |name: &str| matches!(get(name), Some("1" | "true"));
        let text = |name: &str| get(name).unwrap_or_default().to_owned();
        let number = |name: &str| get(name).and_then(|text| text.parse().ok());
        let client = ClientInfo {
            sdk: sdk(get("sdk").unwrap_or_default()).into(),
            version: text("version"),
            protocol: number("protocol").unwrap_or_default(),
            os: text("os"),
            os_version: text("os_version"),
            device_model: text("device_model"),
            browser: text("browser"),
            browser_version: text("browser_version"),
            network: text("network"),
            client_protocol: number("client_protocol").unwrap_or_default(),
            capabilities: capabilities(get("capabilities").unwrap_or_default()),
            ..ClientInfo::default()
        };
        let attributes = match get("attributes").filter(|text| !text.is_empty()) {
            Some(text) => attributes(text)?,
            None => HashMap::new(),
        };
        let publish = get("publish").filter(|suffix| !suffix.is_empty());
        Ok(JoinParameters {
            single: false,
            client,
            auto_subscribe: get("auto_subscribe").is_none() || is_true("auto_subscribe"),
            allow_pause: get("subscriber_allow_pause").map(|_| is_true("subscriber_allow_pause")),
            auto_data: is_true("auto_subscribe_data_track"),
            reconnect: is_true("reconnect"),
            sid: text("sid"),
            attributes,
            publish: publish.map(str::to_owned),
            ..JoinParameters::default()
        })
    }
}

/// Reads the parameter `join_request`.
fn join_request(text: &str) -> Result<JoinRequest, ParametersError> {
    let bytes = base64(text).ok_or(ParametersError::Base64)?;
    let wrapped = WrappedJoinRequest::decode(&*bytes).map_err(|_| ParametersError::Protobuf)?;
    let request = match wrapped.compression() {
        wrapped_join_request::Compression::None => wrapped.join_request,
        wrapped_join_request::Compression::Gzip => inflate(&wrapped.join_request)?,
    };
    JoinRequest::decode(&*request).map_err(|_| ParametersError::Protobuf)
}

/// Decodes base64 with the alphabet of URLs, with or without padding.
fn base64(text: &str) -> Option<Vec<u8>> {
    let padded = URL_SAFE.decode(text);
    padded.or_else(|_| URL_SAFE_NO_PAD.decode(text)).ok()
}

fn inflate(bytes: &[u8]) -> Result<Vec<u8>, ParametersError> {
    let mut inflated = Vec::new();
    // One byte more shows that it is too long.
    let limit = MAX_JOIN_REQUEST as u64 + 1;
    let read = GzDecoder::new(bytes).take(limit).read_to_end(&mut inflated);
    match read {
        Ok(length) if length <= MAX_JOIN_REQUEST => Ok(inflated),
        Ok(_) | Err(_) => Err(ParametersError::Compression),
    }
}

fn attributes(text: &str) -> Result<HashMap<String, String>, ParametersError> {
    let json = base64(text).ok_or(ParametersError::Attributes)?;
    serde_json::from_slice(&json).map_err(|_| ParametersError::Attributes)
}

fn sdk(name: &str) -> client_info::Sdk {
    use client_info::Sdk;
    match name {
        "ios" => Sdk::Swift,
        name => Sdk::from_str_name(&name.to_ascii_uppercase().replace("UNITYWEB", "UNITY_WEB"))
            .unwrap_or(Sdk::Unknown),
    }
}

fn capabilities(text: &str) -> Vec<i32> {
    let names = text.split(',').map(str::trim);
    let known = names.filter_map(client_info::Capability::from_str_name);
    known.map(i32::from).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn wrapped(compression: i32, join_request: Vec<u8>) -> String {
        let wrapped = WrappedJoinRequest {
            compression,
            join_request,
        };
        format!("join_request={}", URL_SAFE.encode(wrapped.encode_to_vec()))
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let _ = encoder.write_all(bytes);
        encoder.finish().unwrap_or_default()
    }

    #[test]
    fn a_query_has_defaults() {
        let read = JoinParameters::read("protocol=17&sdk=js&adaptive_stream=1", false);
        assert!(read.is_ok_and(|read| read.auto_subscribe
            && !read.single
            && read.client.protocol == 17
            && read.client.sdk() == client_info::Sdk::Js));
        let read = JoinParameters::read("auto_subscribe=0&reconnect=1&sid=PA_1", false);
        assert!(
            read.is_ok_and(|read| !read.auto_subscribe && read.reconnect && read.sid == "PA_1")
        );
    }

    #[test]
    fn a_join_request_may_be_compressed() {
        let request = JoinRequest {
            metadata: "m".to_owned(),
            ..JoinRequest::default()
        };
        let bytes = request.encode_to_vec();
        for query in [wrapped(0, bytes.clone()), wrapped(1, gzip(&bytes))] {
            let read = JoinParameters::read(&query, true);
            assert!(
                read.is_ok_and(|read| read.single && read.metadata == "m"),
                "{query}"
            );
        }
    }

    #[test]
    fn broken_ones_are_refused_with_their_reason() {
        let bomb = gzip(&vec![0; MAX_JOIN_REQUEST + 1]);
        for (query, error) in [
            ("access_token=x".to_owned(), ParametersError::Missing),
            ("join_request=%21".to_owned(), ParametersError::Base64),
            (wrapped(0, vec![255]), ParametersError::Protobuf),
            (wrapped(1, vec![1, 2]), ParametersError::Compression),
            (wrapped(1, bomb), ParametersError::Compression),
        ] {
            assert_eq!(
                JoinParameters::read(&query, true).err(),
                Some(error),
                "{query}"
            );
        }
        let read = JoinParameters::read("attributes=%21", false);
        assert_eq!(read.err(), Some(ParametersError::Attributes));
    }
}
