/// Returns the answer with transport lines in its refused m-lines too.
///
/// RFC 8829 section 5.3.1 does not require them there, and Janus does not write them. But GStreamer
/// before 1.24 refuses a description whose m-lines lack them, so that its WHEP client, which offers
/// audio and video, could not receive audio alone.
pub fn with_transport_everywhere(answer: &str) -> String {
    const WANTED: [&str; 4] = ["a=ice-ufrag:", "a=ice-pwd:", "a=ice-options:", "a=setup:"];
    let is_wanted = |line: &&str| WANTED.iter().any(|wanted| line.starts_with(wanted));
    let lines: Vec<&str> = answer.split_inclusive("\r\n").collect();
    let mut out = String::with_capacity(answer.len() + 256);
    let whole = lines
        .chunk_by(|_, next| !next.starts_with("m="))
        .find(|section| section.iter().filter(|line| is_wanted(line)).count() == WANTED.len());
    for section in lines.chunk_by(|_, next| !next.starts_with("m=")) {
        out.extend(section.iter().copied());
        let is_media = section.first().is_some_and(|line| line.starts_with("m="));
        if is_media && !section.iter().any(is_wanted) {
            let transport = whole.unwrap_or_default().iter().copied();
            out.extend(transport.filter(|line| is_wanted(line)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_lines_get_the_transport_of_the_others() {
        let transport =
            "a=ice-ufrag:u\r\na=ice-pwd:p\r\na=ice-options:trickle\r\na=setup:passive\r\n";
        let head = "v=0\r\ns=-\r\n";
        let audio =
            format!("m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\n{transport}a=rtcp-mux\r\n");
        let video = "m=video 0 UDP/TLS/RTP/SAVPF 0\r\na=inactive\r\na=mid:1\r\n";
        let answer = format!("{head}{audio}{video}");
        assert_eq!(
            with_transport_everywhere(&answer),
            format!("{answer}{transport}")
        );
        let before = format!("{head}{video}{audio}");
        assert_eq!(
            with_transport_everywhere(&before),
            format!("{head}{video}{transport}{audio}")
        );
        for unchanged in [
            format!("{head}{video}"),
            format!("{head}{audio}"),
            String::new(),
        ] {
            assert_eq!(with_transport_everywhere(&unchanged), unchanged);
        }
    }
}
