//! Offers whose m-lines share a transport, and others.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

mod support;

use portunus_sdp::{RemoteDescription, SdpError, SdpType};
use support::{offer, parse};

fn without_group(text: &str) -> String {
    let lines = text.split_inclusive("\r\n");
    lines.filter(|line| !line.starts_with("a=group:")).collect()
}

/// Gives each m-line its own ICE credentials, as without a bundle policy or with one other than
/// max-bundle.
fn each_its_own(text: &str) -> String {
    let mut line = 0;
    let lines = text.split_inclusive("\r\n").map(|text| {
        line += usize::from(text.starts_with("m="));
        match text.strip_prefix("a=ice-ufrag:") {
            Some(ufrag) => format!("a=ice-ufrag:{line}{ufrag}"),
            None => text.to_owned(),
        }
    });
    lines.collect()
}

#[test]
fn lines_with_transports_of_their_own_are_refused() {
    for name in ["chromium", "firefox", "aiortc"] {
        let text = without_group(&each_its_own(&offer(name)));
        let error = parse(&text).unwrap_err();
        assert_eq!(error, SdpError::NotBundled(1), "{name}");
        assert!(error.to_string().contains("a=group:BUNDLE"), "{error}");
    }
}

#[test]
fn a_group_has_to_be_over_all_lines_in_use() {
    let own = each_its_own(&offer("chromium"));
    let grouped = |groups: &str| parse(&own.replace("a=group:BUNDLE 0 1 2", groups));
    for (groups, outside) in [
        ("a=group:BUNDLE 0 1", 2),
        ("a=group:BUNDLE 0 2", 1),
        ("a=group:BUNDLE 1 2", 1),
        ("a=group:BUNDLE 0\r\na=group:BUNDLE 1 2", 1),
        ("a=group:LS 0 1 2", 1),
    ] {
        let refused = grouped(groups).unwrap_err();
        assert_eq!(refused, SdpError::NotBundled(outside), "{groups}");
    }
    // Policies that let the answerer choose write the group too.
    for groups in [
        "a=group:BUNDLE 0 1 2",
        "a=group:LS 0 1\r\na=group:BUNDLE 2 0 1",
    ] {
        assert_eq!(grouped(groups).unwrap().unbundled, None, "{groups}");
    }
}

#[test]
fn one_transport_needs_no_group() {
    let offer = parse(&without_group(&offer("chromium"))).unwrap();
    assert_eq!(offer.unbundled, Some(1));
    assert_eq!(offer.description.media.len(), 3);
}

#[test]
fn one_line_in_use_needs_no_group() {
    let one = without_group(&offer("chromium_data_only"));
    assert_eq!(parse(&one).unwrap().unbundled, None);
    let stopped = each_its_own(&offer("chromium"))
        .replace("m=audio 9", "m=audio 0")
        .replace("m=application 9", "m=application 0")
        // A first line with a transport counts as active.
        .replacen("a=ice-ufrag:1", "a=was-ufrag:", 1);
    assert_eq!(parse(&without_group(&stopped)).unwrap().unbundled, None);
}

#[test]
fn answers_are_taken_without_a_group() {
    let text = without_group(&each_its_own(&offer("chromium")));
    assert!(RemoteDescription::parse(&text, SdpType::Answer, &[]).is_ok());
}
