//! Remote candidates with an mDNS name instead of an address
//! (draft-ietf-mmusic-mdns-ice-candidates).

use std::net::IpAddr;

use super::candidate_text::CandidateText;

/// The positions of a candidate's transport and address among its words.
const TRANSPORT: usize = 2;
const ADDRESS: usize = 4;
/// The longest label of a name, in bytes (RFC 1035 section 2.3.4).
const MAX_LABEL: usize = 63;
const SUFFIX: &str = ".local";

/// Returns whether the address of a candidate is an mDNS name.
pub(super) fn is_mdns(address: &str) -> bool {
    name_of_host(address).is_some()
}

/// Returns the part before `.local`.
fn name_of_host(address: &str) -> Option<&str> {
    let (host, suffix) = address.split_at_checked(address.len().checked_sub(SUFFIX.len())?)?;
    suffix.eq_ignore_ascii_case(SUFFIX).then_some(host)
}

/// Returns the mDNS name in the candidate `text`. Returns `None` if it has an address, if the name
/// has several labels, or if the candidate is not for UDP: a peer that connects by TCP is not
/// connected to.
pub fn mdns_name(text: &str) -> Option<&str> {
    let Some(CandidateText::Candidate(value)) = CandidateText::read(text) else {
        return None;
    };
    let mut words = value.split_whitespace().skip(TRANSPORT);
    let is_udp = words.next()?.eq_ignore_ascii_case("udp");
    let name = words.nth(ADDRESS - TRANSPORT - 1)?;
    let host = name_of_host(name).filter(|_| is_udp)?;
    let is_label = |host: &str| {
        let is_of_label = |c: u8| c.is_ascii_alphanumeric() || c == b'-';
        !host.is_empty() && host.len() <= MAX_LABEL && host.bytes().all(is_of_label)
    };
    is_label(host).then_some(name)
}

/// Replaces the mDNS name in the candidate `text` by `address`.
pub fn with_address(text: &str, address: IpAddr) -> String {
    let Some(CandidateText::Candidate(value)) = CandidateText::read(text) else {
        return text.to_owned();
    };
    let address = address.to_string();
    let words = value.split_whitespace().enumerate();
    let words: Vec<&str> = words
        .map(|(n, word)| match n {
            ADDRESS => address.as_str(),
            _ => word,
        })
        .collect();
    format!("candidate:{}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "0d7a4f3a-24c9-4c26-9b6b-8d6f3b8f3e9e.local";

    #[test]
    fn a_name_is_found_and_an_address_takes_its_place() {
        let text = format!("a=candidate:1 1 udp 2113937151 {NAME} 51000 typ host generation 0\r\n");
        assert_eq!(mdns_name(&text), Some(NAME));
        for (address, expected) in [
            ("192.0.2.1", "192.0.2.1 51000"),
            ("2001:db8::1", "2001:db8::1 51000"),
        ] {
            let address = address.parse();
            assert_eq!(
                address.map(|address| with_address(&text, address)),
                Ok(format!(
                    "candidate:1 1 udp 2113937151 {expected} typ host generation 0"
                ))
            );
        }
        let upper = text.replace("udp", "UDP").replace(".local", ".LOCAL");
        assert_eq!(
            mdns_name(&upper),
            Some(NAME.replace("local", "LOCAL").as_str())
        );
    }

    #[test]
    fn other_candidates_have_no_name() {
        let long = "a".repeat(MAX_LABEL + 1);
        for text in [
            "candidate:1 1 udp 1 192.0.2.1 51000 typ host",
            "candidate:1 1 udp 1 example.org 51000 typ host",
            "candidate:1 1 udp 1 .local 51000 typ host",
            "candidate:1 1 udp 1 a.b.local 51000 typ host",
            "candidate:1 1 udp 1 a_b.local 51000 typ host",
            &format!("candidate:1 1 udp 1 {long}.local 51000 typ host"),
            "candidate:1 1 tcp 1 a.local 9 typ host tcptype active",
            "candidate:1 1 udp 1",
            "candidate:",
            "a.local",
            "",
        ] {
            assert_eq!(mdns_name(text), None, "{text}");
        }
    }
}
