//! The layout of the film over time, in ffmpeg's filters.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use super::options::Layout;

/// The most changes of speaker, since the command line is limited.
const MAX_TURNS: usize = 1_000;
/// Shorter speech, in seconds, does not change the speaker.
const SHORTEST_TURN: f64 = 1.0;

/// A file of the film. Times are in seconds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Source {
    pub path: PathBuf,
    /// The index of its participant.
    pub participant: usize,
    /// Its pictures, by their kinds for the participant, such as camera and screen.
    pub videos: Vec<String>,
    /// Its tracks of sound.
    pub audios: usize,
    /// Its start in the film.
    pub offset: f64,
    pub duration: f64,
    /// The times of speech since its start.
    pub talks: Vec<(f64, f64)>,
}

impl Source {
    fn end(&self) -> f64 {
        self.offset + self.duration
    }
}

/// The film.
#[derive(Debug)]
pub(super) struct Plan {
    sources: Vec<Source>,
    layout: Layout,
    size: (u32, u32),
    fps: u32,
}

/// A rectangle of the film.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    x: u32,
    y: u32,
    width: u32,
    height: u32,
}

impl Plan {
    /// Plans a film of these files. Files that start before the manifest, by the clocks of others,
    /// shift all others.
    pub fn new(
        mut sources: Vec<Source>,
        layout: Layout,
        size: (u32, u32),
        fps: u32,
    ) -> Result<Self, &'static str> {
        sources.retain(|it| it.duration > 0.0 && (!it.videos.is_empty() || it.audios > 0));
        let earliest = sources.iter().map(|it| it.offset).fold(0.0, f64::min);
        for source in &mut sources {
            source.offset -= earliest;
        }
        let plan = Self {
            sources,
            layout,
            size,
            fps,
        };
        if plan.sources.is_empty() {
            return Err("no file of it has anything to be seen or heard");
        }
        if layout == Layout::Speaker && plan.turns().len() > MAX_TURNS {
            return Err("too many changes of speaker: use --layout grid");
        }
        Ok(plan)
    }

    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    pub fn duration(&self) -> Duration {
        let end = self.sources.iter().map(Source::end).fold(0.0, f64::max);
        Duration::from_secs_f64(end.clamp(0.0, 1e7))
    }

    pub fn has_video(&self) -> bool {
        self.sources.iter().any(|it| !it.videos.is_empty())
    }

    pub fn has_audio(&self) -> bool {
        self.sources.iter().any(|it| it.audios > 0)
    }

    /// Returns the filter graph with the outputs `[v]` and `[a]`.
    pub fn filters(&self, video: bool) -> String {
        let mut graph = Vec::new();
        if video && self.has_video() {
            self.pictures(&mut graph);
        }
        if self.has_audio() {
            self.sound(&mut graph);
        }
        graph.join(";")
    }

    fn pictures(&self, graph: &mut Vec<String>) {
        let ((width, height), fps) = (self.size, self.fps);
        let total = self.duration().as_secs_f64();
        graph.push(format!(
            "color=c=black:s={width}x{height}:r={fps}:d={total:.3}[film0]"
        ));
        let inputs = self.sources.iter().enumerate();
        let shown = inputs.flat_map(|(input, source)| {
            let videos = source.videos.iter().enumerate();
            videos.map(move |(video, of)| (input, source, video, of))
        });
        let shown: Vec<_> = shown.collect();
        let turns = self.turns();
        let views = self.views();
        for (step, (input, source, video, of)) in shown.iter().enumerate() {
            let Place {
                x,
                y,
                width,
                height,
            } = self.place(&views, (source.participant, of));
            graph.push(format!(
                "[{input}:v:{video}]fps={fps},scale={width}:{height}:force_original_aspect_ratio=decrease:force_divisible_by=2,\
                 pad={width}:{height}:(ow-iw)/2:(oh-ih)/2,setsar=1[picture{step}]"
            ));
            let when = self.when(source, &turns);
            let to = match step + 1 == shown.len() {
                true => "v".to_owned(),
                false => format!("film{}", step + 1),
            };
            graph.push(format!(
                "[film{step}][picture{step}]overlay={x}:{y}:eof_action=pass:enable='{when}'[{to}]"
            ));
        }
    }

    /// Returns an expression that is 0 at the times when a file is not shown.
    fn when(&self, source: &Source, turns: &[Turn]) -> String {
        if self.layout == Layout::Grid {
            return format!("between(t,{:.3},{:.3})", source.offset, source.end());
        }
        let mut when = String::from("0");
        for turn in turns
            .iter()
            .filter(|it| it.participant == source.participant)
        {
            let (from, to) = (turn.from.max(source.offset), turn.to.min(source.end()));
            if from < to {
                let _ = write!(when, "+between(t,{from:.3},{to:.3})");
            }
        }
        when
    }

    fn sound(&self, graph: &mut Vec<String>) {
        let inputs = self.sources.iter().enumerate();
        let heard =
            inputs.flat_map(|(input, source)| (0..source.audios).map(move |it| (input, it)));
        let mut inputs = String::new();
        let mut count = 0;
        for (input, audio) in heard {
            graph.push(format!(
                "[{input}:a:{audio}]aresample=48000:async=1:first_pts=0,aformat=channel_layouts=stereo[sound{count}]"
            ));
            let _ = write!(inputs, "[sound{count}]");
            count += 1;
        }
        // All at full volume, as in the room. The limiter handles rare peaks.
        graph.push(format!(
            "{inputs}amix=inputs={count}:normalize=0:dropout_transition=0,alimiter=limit=0.95:level=0,apad[a]"
        ));
    }

    /// Returns the shown pictures, by participants.
    fn views(&self) -> Vec<View<'_>> {
        let mut views = Vec::new();
        for source in &self.sources {
            for of in &source.videos {
                let view = (source.participant, of.as_str());
                if !views.contains(&view) {
                    views.push(view);
                }
            }
        }
        // For one participant, in the order of their arrival.
        views.sort_by_key(|(participant, _)| *participant);
        views
    }

    /// Returns the indices of the shown participants, in order.
    fn people(&self) -> Vec<usize> {
        let mut people: Vec<_> = self.views().iter().map(|view| view.0).collect();
        people.dedup();
        people
    }

    /// Returns the rectangles of pictures: beside all others, or beside those of the same
    /// participant.
    fn place(&self, views: &[View<'_>], view: View<'_>) -> Place {
        let (width, height) = self.size;
        let beside = views.iter().filter(|it| match self.layout {
            Layout::Grid => true,
            Layout::Speaker => it.0 == view.0,
        });
        let beside: Vec<_> = beside.collect();
        let index = beside.iter().position(|it| **it == view).unwrap_or(0) as u32;
        let count = beside.len() as u32;
        let columns = (1_u32..).find(|it| it * it >= count).unwrap_or(1);
        let rows = count.div_ceil(columns).max(1);
        // Even, as encoders require.
        let (w, h) = ((width / columns) & !1, (height / rows) & !1);
        Place {
            x: index % columns * w,
            y: index / columns * h,
            width: w.max(2),
            height: h.max(2),
        }
    }

    /// Returns who is shown when, if one is shown: the last of those shown who started to talk.
    fn turns(&self) -> Vec<Turn> {
        let people = self.people();
        let mut talks: Vec<_> = self
            .sources
            .iter()
            .filter(|source| people.contains(&source.participant))
            .flat_map(|source| {
                let long = source
                    .talks
                    .iter()
                    .filter(|(from, to)| to - from >= SHORTEST_TURN);
                long.map(|(from, _)| (source.offset + from, source.participant))
            })
            .collect();
        talks.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total = self.duration().as_secs_f64();
        let first = talks.first().map(|it| it.1).or(people.first().copied());
        let mut turns: Vec<Turn> = Vec::new();
        turns.extend(first.map(|participant| Turn {
            participant,
            from: 0.0,
            to: total,
        }));
        for (from, participant) in talks {
            if let Some(last) = turns.last_mut().filter(|it| it.participant != participant) {
                last.to = from;
                turns.push(Turn {
                    participant,
                    from,
                    to: total,
                });
            }
        }
        turns
    }
}

/// A participant, and the kind of its pictures.
type View<'a> = (usize, &'a str);

/// A time span in which a participant is shown.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Turn {
    participant: usize,
    from: f64,
    to: f64,
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]

    use super::*;

    fn source(participant: usize, offset: f64, talks: &[(f64, f64)]) -> Source {
        Source {
            path: PathBuf::from("a.webm"),
            participant,
            videos: vec!["0".to_owned()],
            audios: 1,
            offset,
            duration: 10.0,
            talks: talks.to_vec(),
        }
    }

    fn plan(sources: Vec<Source>, layout: Layout) -> Plan {
        Plan::new(sources, layout, (640, 480), 25).unwrap()
    }

    #[test]
    fn everybody_has_a_place() {
        let three = (0..3).map(|it| source(it, it as f64, &[])).collect();
        let plan = plan(three, Layout::Grid);
        let views = plan.views();
        let places: Vec<_> = views.iter().map(|it| plan.place(&views, *it)).collect();
        let corners: Vec<_> = places.iter().map(|it| (it.x, it.y)).collect();
        assert_eq!(corners, [(0, 0), (320, 0), (0, 240)]);
        assert!(places.iter().all(|it| (it.width, it.height) == (320, 240)));
        assert_eq!(plan.duration(), Duration::from_secs(12));
        let filters = plan.filters(true);
        assert!(filters.contains("between(t,2.000,12.000)"), "{filters}");
        assert!(filters.ends_with("[a]"));
        assert!(!plan.filters(false).contains("overlay"));
    }

    #[test]
    fn a_camera_and_a_screen_are_beside_each_other_and_parts_of_one_are_not() {
        let both = || vec!["camera".to_owned(), "screen".to_owned()];
        let ann = Source {
            videos: both(),
            audios: 2,
            ..source(0, 0.0, &[])
        };
        let next = Source {
            offset: 10.0,
            ..ann.clone()
        };
        let sources = vec![ann, source(1, 0.0, &[]), next];
        for (layout, size) in [(Layout::Grid, (320, 240)), (Layout::Speaker, (320, 480))] {
            let plan = plan(sources.clone(), layout);
            let views = plan.views();
            assert_eq!(views, [(0, "camera"), (0, "screen"), (1, "0")]);
            let places = [0, 1].map(|it| plan.place(&views, views[it]));
            assert_eq!(places.map(|it| (it.x, it.y)), [(0, 0), (320, 0)]);
            assert!(places.iter().all(|it| (it.width, it.height) == size));
            let filters = plan.filters(true);
            for input in ["[0:v:0]", "[0:v:1]", "[1:v:0]", "[2:v:1]", "[0:a:1]"] {
                assert!(filters.contains(input), "{input} {filters}");
            }
            assert!(filters.contains("amix=inputs=5"), "{filters}");
        }
    }

    #[test]
    fn what_began_before_the_manifest_moves_all_back() {
        let plan = plan(
            vec![source(0, -1.5, &[]), source(1, 1.0, &[])],
            Layout::Grid,
        );
        let offsets: Vec<_> = plan.sources().iter().map(|it| it.offset).collect();
        assert_eq!(offsets, [0.0, 2.5]);
    }

    #[test]
    fn whoever_talks_is_shown() {
        let ann = source(0, 0.0, &[(1.0, 3.0), (4.0, 4.2)]);
        let bob = source(1, 2.0, &[(1.0, 5.0)]);
        let plan = plan(vec![ann, bob], Layout::Speaker);
        let turns = plan.turns();
        let who: Vec<_> = turns
            .iter()
            .map(|it| (it.participant, it.from, it.to))
            .collect();
        assert_eq!(who, [(0, 0.0, 3.0), (1, 3.0, 12.0)]);
    }

    #[test]
    fn nothing_to_be_seen_or_heard_is_no_film() {
        assert!(Plan::new(Vec::new(), Layout::Grid, (640, 480), 25).is_err());
    }
}
