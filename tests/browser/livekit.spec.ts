// livekit-client as its authors publish it, against the LiveKit door.
import { expect, FIREFOX, test as base } from './fixtures';
import { connect, inRoom, openSdk, seen, startLiveKit, token, type LiveKitServer } from './livekit';

const test = base.extend<object, { livekit: LiveKitServer }>({
  livekit: [
    async ({}, use) => {
      const server = await startLiveKit();
      await use(server);
      const status = await server.stop();
      if (status !== 0) throw new Error(`The server ended with status ${status}:\n${server.log().slice(-4000)}`);
    },
    { scope: 'worker' },
  ],
});

/** Two peer connections, as all SDKs know them. */
const TWO = { singlePeerConnection: false };

test('two PeerConnections: each hears and sees the other', FIREFOX, async ({ context, livekit }) => {
  const [al, bo] = [await context.newPage(), await context.newPage()];
  for (const [page, name] of [[al, 'al'], [bo, 'bo']] as const) {
    await openSdk(page, livekit);
    await connect(page, livekit, token(name, 'both'), TWO);
    await inRoom(page, 'room.localParticipant.enableCameraAndMicrophone()');
  }
  for (const [page, other] of [[al, 'bo'], [bo, 'al']] as const) {
    await expect.poll(() => seen(page)).toEqual([`${other} camera subscribed on`, `${other} microphone subscribed on`]);
    await expect.poll(() => inRoom(page, `document.querySelector('video')?.videoWidth > 0 && document.querySelector('video').currentTime > 0.5`)).toBe(true);
    expect(await inRoom(page, `[...room.remoteParticipants.values()][0].name`)).toBe(other.toUpperCase());
  }
  await inRoom(bo, 'room.disconnect()');
  await expect.poll(() => inRoom(al, 'room.remoteParticipants.size')).toBe(0);
});

test('one PeerConnection: each hears and sees all others, who come and go', FIREFOX, async ({ context, livekit }) => {
  const names = ['al', 'bo', 'cy'];
  const pages = [];
  for (const name of names) {
    const page = await context.newPage();
    pages.push(page);
    await openSdk(page, livekit);
    await connect(page, livekit, token(name, 'one'));
    await inRoom(page, 'room.localParticipant.enableCameraAndMicrophone()');
  }
  const of = (others: string[]) => others.flatMap((it) => [`${it} camera subscribed on`, `${it} microphone subscribed on`]);
  for (const [index, page] of pages.entries()) {
    const others = names.filter((_, other) => other !== index);
    await expect.poll(() => seen(page)).toEqual(of(others));
    await expect.poll(() => inRoom(page, `[...document.querySelectorAll('video')].filter((it) => it.currentTime > 0.5).length`)).toBe(2);
    expect(await inRoom(page, 'room.engine.pcManager.mode')).toBe('publisher-only');
  }
  await inRoom(pages[2], 'room.disconnect()');
  await expect.poll(() => seen(pages[0])).toEqual(of(['bo']));
  // Another one takes the sections that are free now.
  await connect(pages[2], livekit, token('di', 'one'));
  await inRoom(pages[2], 'room.localParticipant.enableCameraAndMicrophone()');
  await expect.poll(() => seen(pages[0])).toEqual(of(['bo', 'di']));
  await expect.poll(() => inRoom(pages[0], `[...document.querySelectorAll('video')].filter((it) => it.currentTime > 0.5 && !it.ended).length`)).toBeGreaterThanOrEqual(2);
});
