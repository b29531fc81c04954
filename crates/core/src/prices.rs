//! Prices in the budget of memory, in bytes: upper bounds of the memory used.

use serde_json::Value;

/// A connection: its sockets' buffers, its tasks, and [`CONNECTION_PREPAID`].
pub const CONNECTION: usize = 32 << 10;
/// A connection's messages cost nothing up to this size, so that short requests and events get
/// through even if all memory is used up.
pub const CONNECTION_PREPAID: usize = 16 << 10;
/// TLS of a connection.
pub const TLS: usize = 24 << 10;
/// A session, and [`SESSION_PREPAID`].
pub(crate) const SESSION: usize = 8 << 10;
/// The events of a session that wait for a long poll cost nothing up to this size.
pub(crate) const SESSION_PREPAID: usize = 4 << 10;
/// A handle: its task, its queue, and the plugin's state.
pub(crate) const HANDLE: usize = 8 << 10;
/// A PeerConnection with little media, without descriptions.
const PEER_CONNECTION: usize = 32 << 10;

/// Returns the price of a PeerConnection with the client's description `sdp`, which is kept as text
/// and parsed. The server's description is no longer.
pub(crate) fn peer_connection(sdp: &str) -> usize {
    sdp.len().saturating_mul(3).saturating_add(PEER_CONNECTION)
}

/// A JSON value with its place in an array or an object.
const VALUE: usize = 128;

/// Returns the price of a request while it is parsed and answered. It is an upper bound: a comma in
/// a string counts as a value.
pub fn request(text: &[u8]) -> usize {
    let is_value = |byte: &&u8| matches!(byte, b',' | b'[' | b'{');
    let values = text.iter().filter(is_value).count();
    values.saturating_mul(VALUE).saturating_add(text.len())
}

/// Returns the price of a value that waits to be sent.
pub(crate) fn value(value: &Value) -> usize {
    let inner = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(entries) => entries.iter().map(self::value).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| name.len().saturating_add(self::value(member)))
            .sum(),
    };
    inner.saturating_add(VALUE)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_costs_what_its_values_take() {
        let bomb = format!("[{}1]", "1,".repeat(10_000));
        let parsed: Value = serde_json::from_str(&bomb).unwrap_or_default();
        let taken = size_of::<Value>() * parsed.as_array().map_or(0, Vec::capacity);
        assert!(request(bomb.as_bytes()) >= taken, "{taken}");
        assert!(request(bomb.as_bytes()) >= value(&parsed));
        let text = json!({ "sdp": "v=0\r\n".repeat(1_000) }).to_string();
        assert!(request(text.as_bytes()) < 2 * text.len());
    }
}
