//! Runs a pipeline, as gst-launch does, with `whipsink`, `whipclientsink`, `whepsrc` and `rtpav1pay` of gst-plugins-rs. It
//! ends with the pipeline, with an error, or when the standard input ends: then in an orderly way, so that a WHIP resource is
//! deleted.

use std::io::Read;
use std::process::ExitCode;

use gst::prelude::*;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    gst::init()?;
    gstwebrtchttp::plugin_register_static()?;
    gstrswebrtc::plugin_register_static()?;
    gstrsrtp::plugin_register_static()?;
    let words: Vec<String> = std::env::args().skip(1).collect();
    let pipeline = gst::parse::launch(&words.join(" "))?;
    let bus = pipeline.bus().ok_or("no pipeline")?;
    let stopper = bus.clone();
    std::thread::spawn(move || {
        // Whatever it says: its end is the sign.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = stopper.post(gst::message::Eos::new());
    });
    pipeline.set_state(gst::State::Playing)?;
    let mut outcome = Ok(());
    for message in bus.iter_timed(gst::ClockTime::NONE) {
        match message.view() {
            gst::MessageView::Eos(_) => break,
            gst::MessageView::Error(error) => {
                let debug = error.debug().unwrap_or_default();
                outcome = Err(format!("{}: {debug}", error.error()).into());
                break;
            }
            _ => {}
        }
    }
    pipeline.set_state(gst::State::Null)?;
    outcome
}
