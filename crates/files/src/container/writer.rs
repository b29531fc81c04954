//! The writers of the containers.

use super::{Container, ContainerWriter, FileInfo};
use crate::matroska::MatroskaWriter;
use crate::mp4::Mp4Writer;

/// Returns a writer for a new file.
pub fn writer(container: Container, info: FileInfo) -> Box<dyn ContainerWriter> {
    match container {
        Container::WebM | Container::Matroska => Box::new(MatroskaWriter::new(container, info)),
        Container::Mp4 => Box::new(Mp4Writer::new(info)),
    }
}
