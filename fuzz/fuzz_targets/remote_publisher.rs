#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_media::testing::RemotePublisher;

// Datagrams on the ports of a remote publisher, each preceded by its length. Streams and messages
// are told apart by their SSRCs, and nothing panics. The first byte chooses whether there is a key.
fuzz_target!(|bytes: &[u8]| {
    let Some((secret, mut rest)) = bytes.split_first() else {
        return;
    };
    let mut publisher = RemotePublisher::new(secret % 2 == 1);
    while let Some((len, more)) = rest.split_first() {
        let (datagram, more) = more.split_at(usize::from(*len).min(more.len()));
        rest = more;
        publisher.take_in(datagram);
    }
});
