"""A server with LiveKit's protocol, and participants by LiveKit's SDK for Python as it is published."""

import asyncio
import contextlib
import datetime
import math

from livekit import api, rtc

from server import Server, free_port

KEY, SECRET = "devkey", "secret-of-32-bytes-for-the-tests"

# Of the sound that is played and heard.
RATE = 48_000
FRAME = RATE // 100


class LiveKitServer(Server):
    """The server, with `url` for clients (`ws`) and `api_url` for services (`http`)."""

    def __init__(self, config: str = ""):
        port = free_port()
        super().__init__(f'[livekit]\nkeys = {{ {KEY} = "{SECRET}" }}\nbind = ["127.0.0.1"]\nport = {port}\n{config}')
        self.url, self.api_url = f"ws://127.0.0.1:{port}", f"http://127.0.0.1:{port}"


def token(identity: str, room: str, **grants) -> str:
    """A token of somebody who joins a room."""
    made = api.AccessToken(KEY, SECRET).with_identity(identity).with_name(identity.upper())
    made = made.with_ttl(datetime.timedelta(minutes=5))
    return made.with_grants(api.VideoGrants(room_join=True, room=room, **grants)).to_jwt()


async def until(what: str, holds, timeout: float = 30):
    """Waits until something holds, and returns it."""
    try:
        async with asyncio.timeout(timeout):
            while not (found := holds()):
                await asyncio.sleep(0.02)
            return found
    except TimeoutError:
        raise AssertionError(f"not within {timeout} s: {what}") from None


class Guest:
    """A participant. Notes what happens, and receives all tracks."""

    def __init__(self):
        self.room = rtc.Room()
        self.events: list[str] = []
        self.tones: dict[str, float] = {}
        self.pictures: dict[str, tuple[int, int]] = {}
        self.frames: dict[str, int] = {}
        self.tasks = contextlib.AsyncExitStack()
        note, on = self.events.append, self.room.on
        on("participant_connected", lambda p: note(f"{p.identity} enters"))
        on("participant_disconnected", lambda p: note(f"{p.identity} leaves"))
        on("track_published", lambda publication, p: note(f"{publication.name} of {p.identity} is there"))
        on("track_unpublished", lambda publication, p: note(f"{publication.name} of {p.identity} ends"))
        on("track_muted", lambda p, publication: note(f"{publication.name} of {p.identity} is muted"))
        on("track_unmuted", lambda p, publication: note(f"{publication.name} of {p.identity} is unmuted"))
        on("active_speakers_changed", lambda speakers: [note(f"{p.identity} speaks") for p in speakers])
        on("participant_attributes_changed", lambda changed, p: note(f"{changed} of {p.identity}"))
        on("participant_name_changed", lambda p, _old, new: note(f"{p.identity} is {new}"))
        on("data_received", lambda packet: note(f"data {packet.data.decode()} {packet.topic or ''} of {packet.participant.identity}"))
        on("sip_dtmf_received", lambda dtmf: note(f"key {dtmf.digit} of {dtmf.participant.identity}"))
        on("reconnecting", lambda: note("reconnecting"))
        on("reconnected", lambda: note("reconnected"))
        on("disconnected", lambda reason: note(f"disconnected {rtc.DisconnectReason.Name(reason)}"))
        on("track_subscribed", self.receive)

    def receive(self, track, publication, participant):
        """Receives a track: `tones` and `pictures` have what it was last, `frames` how much came."""
        name = publication.name
        self.events.append(f"{name} of {participant.identity}")
        receive = self.hear if track.kind == rtc.TrackKind.KIND_AUDIO else self.see
        self.tasks.push_async_callback(cancel, asyncio.create_task(receive(name, track)))

    async def hear(self, name: str, track):
        async for event in rtc.AudioStream(track, sample_rate=RATE, num_channels=1, frame_size_ms=100):
            self.tones[name] = frequency(event.frame)
            self.frames[name] = self.frames.get(name, 0) + 1

    async def see(self, name: str, track):
        async for event in rtc.VideoStream(track):
            self.pictures[name] = (event.frame.width, event.frame.height)
            self.frames[name] = self.frames.get(name, 0) + 1

    async def play(self, name: str, hertz: float):
        """Publishes a tone. Returns the publication."""
        source = rtc.AudioSource(RATE, 1)
        track = rtc.LocalAudioTrack.create_audio_track(name, source)
        options = rtc.TrackPublishOptions(source=rtc.TrackSource.SOURCE_MICROPHONE)
        publication = await self.room.local_participant.publish_track(track, options)
        self.tasks.push_async_callback(cancel, asyncio.create_task(play_tone(source, hertz)))
        return publication

    async def show(self, name: str, width: int, height: int, *, simulcast: bool = False):
        """Publishes pictures of this size, with smaller ones for `simulcast`. Returns the publication."""
        source = rtc.VideoSource(width, height)
        track = rtc.LocalVideoTrack.create_video_track(name, source)
        options = rtc.TrackPublishOptions(source=rtc.TrackSource.SOURCE_CAMERA, simulcast=simulcast)
        if simulcast:
            options.video_encoding.max_bitrate, options.video_encoding.max_framerate = 4_000_000, 20
        publication = await self.room.local_participant.publish_track(track, options)
        self.tasks.push_async_callback(cancel, asyncio.create_task(paint(source, width, height)))
        return publication

    async def notices(self, event: str):
        """Waits for an event."""
        try:
            await until(event, lambda: event in self.events)
        except AssertionError as error:
            raise AssertionError(f"{error}; {self.events}") from None

    async def hears(self, name: str, hertz: float):
        """Waits until a track is this tone."""
        try:
            await until(f"{name} of {hertz} Hz", lambda: abs(self.tones.get(name, 0) - hertz) < 30)
        except AssertionError as error:
            raise AssertionError(f"{error}; {self.tones} {self.events}") from None

    async def sees(self, name: str, width: int, height: int):
        """Waits until pictures of this size come."""
        before = self.frames.get(name, 0)
        try:
            await until(f"{name} moves", lambda: self.pictures.get(name) == (width, height) and self.frames[name] > before + 3)
        except AssertionError as error:
            raise AssertionError(f"{error}; {self.pictures} {self.events}") from None

    async def leave(self):
        await self.tasks.aclose()
        await self.room.disconnect()


async def cancel(task: asyncio.Task):
    """Ends what receives or plays."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def play_tone(source: rtc.AudioSource, hertz: float):
    """Plays a tone until it is cancelled."""
    at = 0
    while True:
        frame = rtc.AudioFrame.create(RATE, 1, FRAME)
        for index in range(FRAME):
            frame.data[index] = int(12_000 * math.sin(2 * math.pi * hertz * (at + index) / RATE))
        at += FRAME
        # It waits while enough is queued.
        await source.capture_frame(frame)


async def paint(source: rtc.VideoSource, width: int, height: int):
    """Sends pictures that change until it is cancelled."""
    shade = 0
    while True:
        pixel = bytes((shade, 255 - shade, 128, 255))
        source.capture_frame(rtc.VideoFrame(width, height, rtc.VideoBufferType.RGBA, pixel * (width * height)))
        shade = (shade + 16) % 256
        await asyncio.sleep(0.05)


def frequency(frame: rtc.AudioFrame) -> float:
    """The frequency of a tone, by its zero crossings; 0 if it is silent."""
    samples = frame.data
    if max(samples, default=0) < 1_000:
        return 0
    crossings = sum(1 for one, next in zip(samples, samples[1:]) if one < 0 <= next)
    return crossings * frame.sample_rate / len(samples)
