//! Runs a pipeline, as gst-launch does, with `whipsink`, `whipclientsink`, `whepsrc` and `rtpav1pay` of gst-plugins-rs. It
//! ends with the pipeline, with an error, or when the standard input ends: then in an orderly way, so that a WHIP resource is
//! deleted.
//!
//! Pads of the element that is named `whep` are linked here, to the elements named `audio` and `video`: a link written as
//! `whep. ! application/x-rtp,media=audio ! ...` takes whatever pad comes first, as that one's caps are not known yet.
//!
//! A `udpsink` that is named `out` sends from the port of the `udpsrc` that is named `in`: symmetric RTP, as telephones have it.

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
    let bin = pipeline
        .dynamic_cast_ref::<gst::Bin>()
        .ok_or("the pipeline has a single element")?;
    if let Some(whep) = bin.by_name("whep") {
        link_by_media(&whep, bin);
    }
    let bus = pipeline.bus().ok_or("no pipeline")?;
    let stopper = bus.clone();
    std::thread::spawn(move || {
        // Whatever it says: its end is the sign.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = stopper.post(gst::message::Eos::new());
    });
    if let (Some(input), Some(output)) = (bin.by_name("in"), bin.by_name("out")) {
        // The source opens its socket now, before the sink opens one of its own.
        input.set_state(gst::State::Ready)?;
        output.set_property_from_value("socket", &input.property_value("used-socket"));
    }
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

/// Links each pad that the element gets to the element of the bin whose name is the pad's media (`audio`, `video`), as soon as
/// the pad's caps are known: media flow only after them.
fn link_by_media(element: &gst::Element, bin: &gst::Bin) {
    let bin = bin.downgrade();
    element.connect_pad_added(move |_, pad| {
        if let Some(caps) = pad.current_caps() {
            link(pad, &caps, &bin);
            return;
        }
        let bin = bin.clone();
        pad.add_probe(
            gst::PadProbeType::EVENT_DOWNSTREAM,
            move |pad, info| match info.event().map(|event| event.view()) {
                Some(gst::EventView::Caps(event)) => {
                    link(pad, event.caps(), &bin);
                    gst::PadProbeReturn::Remove
                }
                _ => gst::PadProbeReturn::Ok,
            },
        );
    });
}

fn link(pad: &gst::Pad, caps: &gst::CapsRef, bin: &gst::glib::WeakRef<gst::Bin>) {
    let media = caps
        .structure(0)
        .and_then(|structure| structure.get::<String>("media").ok())
        .unwrap_or_default();
    let sink = bin
        .upgrade()
        .and_then(|bin| bin.by_name(&media))
        .and_then(|element| element.static_pad("sink"));
    match sink {
        Some(sink) => {
            if let Err(error) = pad.link(&sink) {
                eprintln!("{media}: {error}");
            }
        }
        None => eprintln!("there is no element named {media:?} for {caps}"),
    }
}
