#![no_main]

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;
use portunus_api::testing::forwarded_client;
use portunus_core::Network;

// A line per header from a client. Whatever it sends, it cannot influence the address that the
// proxy adds after it.
fuzz_target!(|sent: &str| {
    let proxies: Vec<Network> = ["127.0.0.1", "10.0.0.0/8"]
        .map(|it| it.parse().expect("a network"))
        .into();
    for (name, appended) in [
        ("x-forwarded-for", "198.51.100.7"),
        ("forwarded", "for=198.51.100.7;proto=https"),
    ] {
        let name = HeaderName::from_static(name);
        let mut headers = HeaderMap::new();
        for line in sent.lines() {
            if let Ok(value) = HeaderValue::from_str(line) {
                headers.append(&name, value);
            }
        }
        let _ = forwarded_client(&headers, &proxies);
        headers.append(&name, HeaderValue::from_static(appended));
        let client = "198.51.100.7".parse().expect("an address");
        assert_eq!(forwarded_client(&headers, &proxies), Some(client));
    }
});
