//! Ogg files of Opus are written and read again by our reader, and by ffprobe and ffmpeg, complete
//! and torn. Without these programs, their parts are skipped with a message.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::io::{self, Cursor, Write};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ogg::PacketReader;
use portunus_files::opus::{
    OggOpusError, OggOpusWriter, OpusHead, OpusTags, OpusTime, Placed, packet_duration,
};
use portunus_files::{MediaFile, OpenOptions};
use portunus_rtp::Header;
use proptest::collection::vec;
use proptest::prelude::*;

const ONCE: OpenOptions = OpenOptions {
    audio: true,
    video: false,
    looping: false,
};

const SERIAL: u32 = 77;

/// A second of tones of 440 Hz and more, by a real encoder, in packets of 20 ms.
fn tone() -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tone.opus");
    let mut reader = PacketReader::new(std::fs::File::open(path).unwrap());
    let packets = std::iter::from_fn(|| reader.read_packet().unwrap());
    let packets: Vec<_> = packets.map(|packet| packet.data).skip(2).collect();
    assert_eq!(packet_duration(&packets[0]), Some(OpusTime(960)));
    packets
}

fn writer<W: Write>(out: W) -> OggOpusWriter<W> {
    let tags = OpusTags::default().with("TITLE", "A tone");
    OggOpusWriter::new(out, SERIAL, &OpusHead::default(), &tags).unwrap()
}

/// Writes packets at their times in ms, and the end of the file.
fn write(packets: &[(u64, Vec<u8>)], until: u64) -> Vec<u8> {
    let mut writer = writer(Vec::new());
    for (at, packet) in packets {
        let at = Duration::from_millis(*at).into();
        assert_eq!(writer.packet(at, packet).unwrap(), Placed::Written);
    }
    writer.finish(Duration::from_millis(until).into()).unwrap()
}

/// Returns the payloads up to an error, and their duration.
fn read(file: Vec<u8>) -> (Vec<Vec<u8>>, OpusTime) {
    let mut file = match MediaFile::from_reader(Cursor::new(file), "opus", &ONCE) {
        Ok(file) => file,
        Err(_) => return (Vec::new(), OpusTime(0)),
    };
    let mut payloads = Vec::new();
    while let Some(Ok(packet)) = file.next() {
        let header = Header::parse(packet.bytes).unwrap();
        payloads.push(header.payload(packet.bytes).to_vec());
    }
    let times = payloads.iter().map(|it| packet_duration(it).unwrap().0);
    let length = OpusTime(times.sum());
    (payloads, length)
}

/// Returns the granule position and the flags of each page.
fn pages(mut file: &[u8]) -> Vec<(u64, u8)> {
    let mut pages = Vec::new();
    while !file.is_empty() {
        assert_eq!(&file[..4], b"OggS");
        let segments = usize::from(file[26]);
        let body: usize = file[27..27 + segments].iter().map(|it| *it as usize).sum();
        pages.push((u64::from_le_bytes(file[6..14].try_into().unwrap()), file[5]));
        file = &file[27 + segments + body..];
    }
    pages
}

/// A packet of any kind and length in bytes.
fn packet() -> impl Strategy<Value = Vec<u8>> {
    let one = (any::<u8>(), vec(any::<u8>(), 1..400)).prop_map(|(toc, mut rest)| {
        rest.insert(0, toc);
        if toc & 3 == 3 {
            rest[1] = rest[1] & 0xc0 | 1;
        }
        rest
    });
    one.prop_filter("at most 120 ms", |packet| packet_duration(packet).is_some())
}

#[test]
fn how_long_a_file_is_can_be_told_from_its_end() {
    let tone = tone();
    let packets = (0..250_u64).map(|at| (at * 20, tone[at as usize % tone.len()].clone()));
    let file = write(&packets.collect::<Vec<_>>(), 5_000);
    let duration = |file: &[u8]| {
        let file = MediaFile::from_reader(Cursor::new(file.to_vec()), "opus", &ONCE);
        file.unwrap().duration()
    };
    assert_eq!(duration(&file), Some(Duration::from_secs(5)));
    // As after a crash of the server: up to the last complete page.
    let cut = &file[..file.len() - 100];
    let told = duration(cut).unwrap();
    assert!((3..5).contains(&told.as_secs()), "{told:?}");
    let (_, length) = read(cut.to_vec());
    assert_eq!(Duration::from(length), told);
    // With hours of silence.
    let late = 3 * 3_600_000;
    let long = write(&[(0, tone[0].clone()), (late, tone[0].clone())], 0);
    assert_eq!(duration(&long), Some(Duration::from_millis(late + 20)));
    // A file torn in the first page has no start.
    let first = file.windows(4).enumerate().filter(|(_, it)| it == b"OggS");
    let first = first.map(|(at, _)| at).nth(2).unwrap();
    assert_eq!(duration(&file[..first + 50]), None);
}

proptest! {
    #[test]
    fn what_is_written_is_read_again_at_its_time(
        packets in vec((packet(), prop_oneof![3 => Just(0), 1 => 0..100_000_u64]), 1..60),
        end in 0..50_000_u64,
        cut in any::<proptest::sample::Index>(),
    ) {
        let mut writer = writer(Vec::new());
        let (mut at, mut begins) = (0, Vec::new());
        for (packet, gap) in &packets {
            at += gap;
            writer.packet(OpusTime(at), packet).unwrap();
            begins.push(at);
            at += packet_duration(packet).unwrap().0;
        }
        let counts = writer.counts();
        let file = writer.finish(OpusTime(at + end)).unwrap();
        let (read_again, length) = read(file.clone());
        // Gaps are filled, except for less than the shortest frame.
        prop_assert!(length.0 <= at + end && length.0 + 120 > at + end);
        let mut expected = packets.iter().zip(&begins).peekable();
        let mut read_at = 0;
        for payload in &read_again {
            let is_next = |((packet, _), begin): &(&(Vec<u8>, u64), &u64)| {
                packet == payload && (read_at..read_at + 120).contains(*begin)
            };
            expected.next_if(is_next);
            read_at += packet_duration(payload).unwrap().0;
        }
        prop_assert!(expected.next().is_none());
        prop_assert_eq!(counts.packets, packets.len() as u64);

        // Pages have at most a second, and only the last one has the end mark.
        let pages = pages(&file);
        let sound = &pages[2..];
        prop_assert_eq!(sound.last().unwrap(), &(length.0, 4));
        let mut before = 0;
        for (granule, flags) in sound {
            prop_assert!(*granule <= before + 48_000);
            prop_assert!(*flags == 0 || *granule == length.0);
            before = *granule;
        }

        // A file that is torn anywhere is valid up to there.
        let cut = cut.index(file.len());
        let (some, _) = read(file[..cut].to_vec());
        prop_assert!(read_again.starts_with(&some));
    }

    #[test]
    fn a_file_is_at_most_a_second_behind(lost in vec(any::<bool>(), 100..300)) {
        let packet = [0xf8, 0xff, 0xfe];
        let mut writer = writer(Vec::new());
        for (n, lost) in lost.into_iter().enumerate() {
            let at = OpusTime(n as u64 * 960);
            if !lost {
                writer.packet(at, &packet).unwrap();
            }
            let written = writer.out().clone();
            let (_, length) = read(written);
            prop_assert!(length.0 + 48_000 + 960 >= writer.end().0);
        }
    }
}

#[test]
fn what_comes_late_is_left_out() {
    let mut writer = writer(Vec::new());
    let packet = [0xf8, 1, 2, 3];
    let mut put = |at| writer.packet(OpusTime(at), &packet).unwrap();
    assert_eq!(put(960), Placed::Written);
    assert_eq!(put(0), Placed::Late);
    assert_eq!(put(960), Placed::Late);
    // Clocks that are slightly wrong.
    assert_eq!(put(1_900), Placed::Written);
    assert_eq!(writer.end(), OpusTime(2_880));
    assert_eq!(writer.counts().late, 2);
    assert_eq!(writer.counts().missing, OpusTime(960));
}

#[test]
fn what_is_no_packet_is_refused_and_others_follow() {
    let mut writer = writer(Vec::new());
    let packet = [0xf8, 1];
    for wrong in [&[][..], &[0xff], &[0xff, 63], &vec![0xf8; 70_000]] {
        let refused = writer.packet(OpusTime(0), wrong);
        assert!(
            matches!(refused, Err(OggOpusError::Malformed)),
            "{refused:?}"
        );
    }
    let refused = writer.packet(OpusTime(u64::MAX / 2), &packet);
    assert!(matches!(refused, Err(OggOpusError::Gap(_))), "{refused:?}");
    writer.packet(OpusTime(0), &packet).unwrap();
    let (read, _) = read(writer.finish(OpusTime(0)).unwrap());
    assert_eq!(read, [packet]);
}

#[test]
fn a_file_without_sound_has_its_headers() {
    let file = writer(Vec::new()).finish(OpusTime(48_000)).unwrap();
    assert_eq!(pages(&file), [(0, 2), (0, 0)]);
}

#[test]
fn a_disk_that_is_full_gets_whole_pages_only() {
    /// The written bytes, and the available room.
    struct Full(Vec<u8>, usize);
    impl Write for &mut Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.len() + bytes.len() > self.1 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut disk = Full(Vec::new(), 15_000);
    let mut writer = writer(&mut disk);
    let failed = (0..1_000).find_map(|n| writer.packet(OpusTime(n * 960), &[0xf8; 80]).err());
    assert!(matches!(failed, Some(OggOpusError::Io(_))), "{failed:?}");
    assert_eq!(pages(&disk.0).last(), Some(&(144_000, 0)));
}

/// Returns the output of a program, or `None` if it is not installed.
fn run(program: &str, arguments: &[&str], path: &Path) -> Option<String> {
    let run = Command::new(program).args(arguments).arg(path).output();
    let Ok(output) = run else {
        println!("skipped: there is no {program}");
        return None;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
    Some(String::from_utf8(output.stdout).unwrap())
}

fn duration(path: &Path) -> Option<f64> {
    let entries = [
        "-v",
        "warning",
        "-show_entries",
        "format=duration",
        "-of",
        "csv=p=0",
    ];
    Some(run("ffprobe", &entries, path)?.trim().parse().unwrap())
}

/// Returns the loudness of each tenth of a second, 0 to 1, by this decoder.
fn loudness(decoder: &str, path: &Path) -> Option<Vec<f64>> {
    let input = [
        "-v",
        "warning",
        "-c:a",
        decoder,
        "-i",
        path.to_str().unwrap(),
    ];
    let output = ["-f", "s16le", "-ac", "1", "-ar", "48000", "-y"];
    let raw = path.with_extension("raw");
    run("ffmpeg", &[&input[..], &output].concat(), &raw)?;
    let samples = std::fs::read(raw).unwrap();
    let loud = samples.chunks(9_600).map(|tenth| {
        let square = tenth.chunks_exact(2).map(|it| {
            let sample = f64::from(i16::from_le_bytes([it[0], it[1]]));
            sample * sample
        });
        let count = tenth.len() as f64 / 2.0;
        (square.sum::<f64>() / count).sqrt() / 32_768.0
    });
    Some(loud.collect())
}

#[test]
fn other_programs_hear_the_tone_where_it_was_and_silence_where_nothing_came() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.opus");
    let tone = tone();
    // The tone until 1 s, silence until 3 s, the tone until 4 s with a lost packet, silence until 5
    // s.
    let first = tone
        .iter()
        .zip(0..50)
        .map(|(packet, n)| (n * 20, packet.clone()));
    let second = tone
        .iter()
        .zip(0..50)
        .map(|(packet, n)| (3_000 + n * 20, packet.clone()));
    let packets: Vec<_> = first.chain(second.filter(|(at, _)| *at != 3_500)).collect();
    let file = write(&packets, 5_000);
    std::fs::write(&path, &file).unwrap();
    let Some(length) = duration(&path) else {
        return;
    };
    assert_eq!(length, 5.0);
    for decoder in ["opus", "libopus"] {
        let Some(loud) = loudness(decoder, &path) else {
            return;
        };
        assert!(
            loud[1..9].iter().all(|it| *it > 0.02),
            "{decoder}: {loud:?}"
        );
        assert!(
            loud[15..30].iter().all(|it| *it < 0.000_5),
            "{decoder}: {loud:?}"
        );
        assert!(
            loud[31..39].iter().all(|it| *it > 0.02),
            "{decoder}: {loud:?}"
        );
        assert!(
            loud[45..50].iter().all(|it| *it < 0.000_5),
            "{decoder}: {loud:?}"
        );
    }
    // Also while it grows: without the last pages.
    let pages = pages(&file).len();
    assert!(pages >= 7, "{pages}");
    let written = {
        let mut writer = writer(Vec::new());
        for (at, packet) in &packets {
            writer
                .packet(Duration::from_millis(*at).into(), packet)
                .unwrap();
        }
        writer.out().clone()
    };
    std::fs::write(&path, written).unwrap();
    let length = duration(&path).unwrap();
    assert!((2.98..4.0).contains(&length), "{length}");
    assert!(loudness("libopus", &path).unwrap()[5] > 0.02);
}
