//! A DSP thread.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use portunus_media::MediaPlane;

use crate::command::{Command, RoomId};
use crate::threads::ThreadPort;

/// Starts a thread.
pub(crate) fn spawn(
    index: usize,
    _pin: bool,
    port: Arc<ThreadPort>,
    _media: MediaPlane,
) -> io::Result<()> {
    let builder = thread::Builder::new().name(format!("audio-{index}"));
    builder.spawn(move || run(&port)).map(drop)
}

fn run(port: &ThreadPort) {
    // It is set once, here.
    let _ = port.thread.set(thread::current());
    let mut rooms = HashMap::<RoomId, ()>::new();
    loop {
        while let Some((room, command)) = port.commands.pop() {
            match command {
                Command::Open { .. } => {
                    rooms.insert(room, ());
                }
                Command::Close => {
                    rooms.remove(&room);
                    port.rooms.fetch_sub(1, Relaxed);
                }
                _ => {}
            }
        }
        thread::park();
    }
}
