"""A participant by LiveKit's SDK for Python, which does what the lines of its standard input say: `guest.py URL TOKEN [one]`.

Each line is a command with its arguments, separated by tabs, and is answered by a line: `ok`, or why not. With `one` it uses one
PeerConnection.
"""

import asyncio
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "interop"))

from livekit import rtc  # noqa: E402

from livekit_room import Guest  # noqa: E402


async def main(url: str, token: str, mode: str = "two"):
    guest, tracks = Guest(), {}

    async def play(name, hertz):
        tracks[name] = await guest.play(name, float(hertz))

    async def show(name, width, height):
        tracks[name] = await guest.show(name, int(width), int(height))

    async def unpublish(name):
        await guest.room.local_participant.unpublish_track(tracks.pop(name).sid)

    commands = {
        "play": play,
        "show": show,
        "mute": lambda name: tracks[name].track.mute(),
        "unmute": lambda name: tracks[name].track.unmute(),
        "unpublish": unpublish,
        "notices": guest.notices,
        "hears": lambda name, hertz: guest.hears(name, float(hertz)),
        "sees": lambda name, width, height: guest.sees(name, int(width), int(height)),
        "data": lambda text, topic: guest.room.local_participant.publish_data(text, topic=topic),
        "leave": guest.leave,
    }
    await guest.room.connect(url, token, rtc.RoomOptions(single_peer_connection=mode == "one"))
    print("ok", flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        name, *arguments = line.rstrip("\n").split("\t")
        try:
            done = commands[name](*arguments)
            if asyncio.iscoroutine(done):
                await done
            print("ok", flush=True)
        except Exception as error:  # It is told to who asked.
            print(repr(error), flush=True)


asyncio.run(main(*sys.argv[1:]))
