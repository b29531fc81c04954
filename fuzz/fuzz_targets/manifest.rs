#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_files::manifest::{MAX_MANIFEST, Manifest};

// A manifest that is read can be written and read again. After additions, it can still be read.
fuzz_target!(|bytes: &[u8]| {
    let Ok(mut manifest) = Manifest::read(bytes) else {
        return;
    };
    let json = manifest.to_json();
    if json.len() > MAX_MANIFEST {
        return;
    }
    let again = Manifest::read(&json).expect("what was written");
    // Times may differ in the last digit.
    assert_eq!(again.participants.len(), manifest.participants.len());
    assert_eq!(
        (again.started_us, again.more),
        (manifest.started_us, manifest.more)
    );
    let files: Vec<_> = manifest
        .participants
        .iter()
        .take(8)
        .map(|it| (it.id.clone(), it.files.first().cloned().unwrap_or_default()))
        .collect();
    for (id, file) in files {
        if let Some(index) = manifest.add_file(&id, Some("Ann"), file) {
            assert!(manifest.change_file(&id, index, |file| file.bytes = 7));
        }
        manifest.leave_out(&id, None, "0");
    }
    assert!(Manifest::read(&manifest.to_json()).is_ok());
});
