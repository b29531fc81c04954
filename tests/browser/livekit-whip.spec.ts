// WHIP and WHEP in rooms of LiveKit, by the room's name, with livekit-client beside them.
import { buildSync } from 'esbuild';
import { expect, FIREFOX, test as base } from './fixtures';
import { blankPage } from './in-page';
import { connect, inRoom, openSdk, seen, startLiveKit, token, type LiveKitServer } from './livekit';

const test = base.extend<{ stringIds: boolean; livekit: LiveKitServer; script: string }>({
  stringIds: false,
  livekit: async ({ stringIds }, use) => {
    const server = await startLiveKit(`[server]\nstring_ids = ${stringIds}\n`);
    await use(server);
    expect(await server.stop()).toBe(0);
  },
  script: async ({}, use) => {
    const entry = new URL('http-media.ts', import.meta.url).pathname;
    const { outputFiles } = buildSync({ entryPoints: [entry], bundle: true, write: false, format: 'iife' });
    await use(outputFiles[0].text);
  },
});

/** The names that the paths of WHIP and WHEP can say: numbers, or with `string_ids` any text. */
for (const [room, stringIds] of [['4712', false], ['studio', true]] as const) {
  test.describe(room, () => {
    test.use({ stringIds });
    test('a publisher by WHIP is seen by livekit-client, whose participant is watched by WHEP', FIREFOX, async ({ context, livekit, script }) => {
      const al = await context.newPage();
      await openSdk(al, livekit);
      await connect(al, livekit, token('7', room));
      await inRoom(al, 'room.localParticipant.enableCameraAndMicrophone()');

      const camera = await context.newPage();
      await blankPage(camera, livekit, script);
      const whip = `${livekit.base}/whip/videoroom/${room}/42?display=Camera`;
      await camera.evaluate(`HttpMedia.publish('${whip}').then((it) => { window.media = it; })`);
      await expect.poll(() => seen(al)).toEqual(['42 camera subscribed on', '42 microphone subscribed on']);
      expect(await inRoom(al, `room.getParticipantByIdentity('42').name`)).toBe('Camera');
      await expect.poll(() => inRoom(al, `[...document.querySelectorAll('video')].some((it) => it.videoWidth === 640 && it.currentTime > 0.5)`)).toBe(true);

      const viewer = await context.newPage();
      await blankPage(viewer, livekit, script);
      await viewer.evaluate(`HttpMedia.play('${livekit.base}/whep/videoroom/${room}/7').then((it) => { window.media = it; })`);
      await expect.poll(() => viewer.evaluate(`[...document.querySelectorAll('video')].some((it) => it.videoWidth > 0 && it.currentTime > 0.5)`)).toBe(true);

      expect(await camera.evaluate('media.end()')).toBe(200);
      await expect.poll(() => inRoom(al, 'room.remoteParticipants.size')).toBe(0);
    });
  });
}
