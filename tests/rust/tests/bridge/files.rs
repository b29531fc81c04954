//! Recordings and announcements.

use std::path::Path;
use std::time::Duration;

use portunus_audiobridge::AudioBridgeConfig;
use portunus_core::record::{Recorder, RecorderConfig};
use serde_json::json;
use tokio::time::sleep;

use crate::world::{Member, ROOM, create, loudness, manage, server, talk, talk_for};

const A: f32 = 400.0;
const B: f32 = 700.0;

fn recorder(folder: &Path) -> Recorder {
    Recorder::new(RecorderConfig {
        dir: Some(folder.to_owned()),
        keep_free_mb: 0,
        ..RecorderConfig::default()
    })
}

/// Reads the sound of a PCM file with 16 bits.
fn wav(path: &Path) -> (u32, Vec<f32>) {
    let mut reader = hound::WavReader::open(path).unwrap();
    let rate = reader.spec().sample_rate;
    let samples = reader.samples::<i16>();
    let sound = samples.map(|sample| f32::from(sample.unwrap()) / 32_768.0);
    (rate, sound.collect())
}

#[tokio::test]
async fn the_mix_and_those_in_it_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(AudioBridgeConfig::default(), recorder(folder.path())).await;
    create(&server, json!({ "mjrs": true, "mjrs_dir": "people" })).await;
    let mut ann = Member::join(&server, A, json!({ "id": 1 })).await;
    let mut bob = Member::join(
        &server,
        B,
        json!({ "id": 2, "filename": "bob", "record": true }),
    )
    .await;
    let record = |on: bool| json!({ "request": "enable_recording", "room": ROOM, "record": on, "record_file": "mix" });
    assert_eq!(
        manage(&server, record(true)).await,
        json!({ "audiobridge": "success", "record": true })
    );
    talk(&mut [&mut ann, &mut bob], "a talk", |it| {
        it[0].hears(B) && it[1].hears(A)
    })
    .await;
    talk_for(&mut [&mut ann, &mut bob], 50).await;
    assert_eq!(manage(&server, record(false)).await["record"], false);
    let mjrs = json!({ "request": "enable_mjrs", "room": ROOM, "mjrs": false });
    assert_eq!(
        manage(&server, mjrs).await,
        json!({ "audiobridge": "success", "mjrs": false })
    );

    let path = folder.path().join("mix.wav");
    for _ in 0..200 {
        let whole = hound::WavReader::open(&path).is_ok_and(|it| it.duration() > 16_000 / 2);
        let own = folder.path().join("people/bob-audio.mjr").exists();
        if whole && own {
            break;
        }
        sleep(Duration::from_millis(50)).await;
    }
    let (rate, sound) = wav(&path);
    assert_eq!(rate, 16_000);
    // Before and after it, or while this machine is late, there may be silence.
    let both = |part: &[f32]| loudness(part, 16_000, A) > 0.03 && loudness(part, 16_000, B) > 0.03;
    assert!(sound.windows(4_800).step_by(800).any(both));
    let names: Vec<_> = std::fs::read_dir(folder.path().join("people"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.contains(&"bob-audio.mjr".to_owned()), "{names:?}");
    let other = names
        .iter()
        .any(|it| it.starts_with("audiobridge-1234-user-1-"));
    assert!(other, "{names:?}");
}
