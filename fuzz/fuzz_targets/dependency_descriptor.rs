#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_rtp::extension::{DependencyReader, TargetsPlace};

// Several descriptors of a stream, each after a byte with its length.
fuzz_target!(|stream: &[u8]| {
    let mut reader = DependencyReader::new();
    let mut rest = stream;
    while let Some((len, after)) = rest.split_first() {
        let Some((value, after)) = after.split_at_checked(usize::from(*len)) else {
            return;
        };
        rest = after;
        let Ok(descriptor) = reader.read(value) else {
            continue;
        };
        let mut out = vec![0xff; value.len() + TargetsPlace::MAX_GROWTH];
        let len = descriptor
            .targets_place
            .write(value, 0b101, &mut out)
            .expect("enough room");
        let again = reader
            .clone()
            .read(&out[..len])
            .expect("a descriptor of ours");
        assert_eq!(again.indications, descriptor.indications);
        assert_eq!(again.chain_diffs, descriptor.chain_diffs);
        let structure = reader.structure().expect("without one nothing is read");
        assert_eq!(again.active_targets, 0b101 & structure.all_targets());
        let _ = structure.targets_within(descriptor.spatial, descriptor.temporal);
        let _ = (
            structure.resolution(descriptor.spatial),
            structure.protecting_chain(0),
        );
    }
});
