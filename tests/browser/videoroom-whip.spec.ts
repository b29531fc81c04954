// GStreamer publishes into a room by WHIP, and a browser in the room watches.
import { isReference } from '../server/index.mjs';
import { FIREFOX } from './fixtures';
import { needsGstreamer, withPipeline } from './gstreamer';
import { enter, expect, ROOMS, seen, streams, test, tile, widthOf } from './room';

const PICTURE = 'videotestsrc is-live=true ! video/x-raw,format=I420,width=320,height=180,framerate=25/1';
const SOUND = 'audiotestsrc is-live=true wave=sine ! audioconvert ! audioresample';

/** By the older element, which takes RTP, and by the newer one, which encodes by itself. */
const ELEMENTS = {
  whipsink: (endpoint: string) =>
    `${PICTURE} ! vp8enc deadline=1 cpu-used=8 keyframe-max-dist=50 ! rtpvp8pay
     ! application/x-rtp,media=video,encoding-name=VP8,payload=96,clock-rate=90000 ! sink.sink_0
     ${SOUND} ! opusenc ! rtpopuspay
     ! application/x-rtp,media=audio,encoding-name=OPUS,payload=97,clock-rate=48000,encoding-params=(string)2 ! sink.sink_1
     whipsink name=sink whip-endpoint="${endpoint}"`,
  whipclientsink: (endpoint: string) =>
    `${PICTURE} ! queue ! sink.video_0 ${SOUND} ! queue ! sink.audio_0
     whipclientsink name=sink video-caps="video/x-vp8" signaller::whip-endpoint="${endpoint}"`,
};

test.skip(isReference, 'the reference has no WHIP');

for (const [element, line] of Object.entries(ELEMENTS)) {
  test(`GStreamer publishes by ${element}, and is seen and heard in the room`, FIREFOX, async ({ context, server }) => {
    needsGstreamer();
    const early = await enter(context, ROOMS.demo, 'Ann', 'source=none');
    const endpoint = `${server.base}/whip/videoroom/${ROOMS.demo}/42?display=Camera`;
    await withPipeline(line(endpoint), async () => {
      await seen(early, 'Camera');
      const late = await enter(context, ROOMS.demo, 'Ben', 'source=none');
      await seen(late, 'Camera');
      for (const viewer of [early, late]) {
        expect(await widthOf(viewer, 'Camera')).toBe(320);
        const [video] = await streams(viewer, 'inbound-rtp', 'video');
        expect([video.frameWidth, video.frameHeight]).toEqual([320, 180]);
        const sound = async () => (await streams(viewer, 'inbound-rtp', 'audio'))[0];
        // It is decoded, and it is a tone, not silence.
        await expect.poll(async () => (await sound()).totalAudioEnergy, { message: 'sound' }).toBeGreaterThan(0);
        const { totalSamplesReceived: before } = await sound();
        await expect.poll(async () => (await sound()).totalSamplesReceived).toBeGreaterThan(before + 10_000);
      }
    });
    await expect(tile(early, 'Camera')).toHaveCount(0);
    await expect(early.getByTestId('log')).toContainText('Camera left.');
  });
}
