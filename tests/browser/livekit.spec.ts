// livekit-client as its authors publish it, against the LiveKit door.
import type { BrowserContext, Page } from '@playwright/test';
import { expect, FIREFOX, test as base } from './fixtures';
import { connect, encrypt, inRoom, openSdk, seen, startLiveKit, token, type LiveKitServer } from './livekit';
import { ask, enter, seen as seenOnPage, SECRET } from './room';

/** A room of the Janus API, too. */
const ROOM = 4711;
const CONFIG = `
[[videoroom.room]]
room = ${ROOM}
description = "Both"
publishers = 8
secret = "${SECRET}"
notify_joining = true
`;

const test = base.extend<object, { livekit: LiveKitServer }>({
  livekit: [async ({ server }, use) => use(server as LiveKitServer), { scope: 'worker' }],
  server: [
    async ({}, use) => {
      const server = await startLiveKit(CONFIG);
      await use(server);
      const status = await server.stop();
      if (status !== 0) throw new Error(`The server ended with status ${status}:\n${server.log().slice(-4000)}`);
    },
    { scope: 'worker' },
  ],
});

/** Opens a page for each of these participants. */
async function join(context: BrowserContext, livekit: LiveKitServer, room: string, names: string[], options: object = {}, video: object = {}): Promise<Page[]> {
  const pages: Page[] = [];
  for (const name of names) {
    const page = await context.newPage();
    await openSdk(page, livekit);
    await connect(page, livekit, token(name, room, video), options);
    pages.push(page);
  }
  return pages;
}

/** The events of this name so far. */
const events = (page: Page, name: string) => inRoom<unknown[][]>(page, `events.filter(([it]) => it === ${JSON.stringify(name)})`);

/** The greatest height of a picture that is received. */
const height = (page: Page) => inRoom<number>(page, `Math.max(0, ...[...document.querySelectorAll('video')].map((it) => it.videoHeight))`);

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
  const pages: Page[] = [];
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

for (const [name, options] of [['two PeerConnections', TWO], ['one PeerConnection', {}]] as const) {
  test(`data by ${name}: messages, texts and calls`, async ({ context, livekit }) => {
    const [al, bo, cy] = await join(context, livekit, `data of ${name}`, ['al', 'bo', 'cy'], options);
    for (const page of [bo, cy]) {
      await inRoom(page, `(window.got = [], room.on('dataReceived', (bytes, from, kind, topic) =>
        got.push([new TextDecoder().decode(bytes), from?.identity, kind, topic].join(' '))),
        room.registerTextStreamHandler('chat', async (reader, from) => got.push('text ' + from.identity + ' ' + (await reader.readAll()).length)),
        room.registerRpcMethod('greet', async (call) => 'hello ' + call.callerIdentity + ', ' + call.payload), null)`);
    }
    await inRoom(al, `room.localParticipant.publishData(new TextEncoder().encode('to all'), { reliable: true, topic: 't' })`);
    await inRoom(al, `room.localParticipant.publishData(new TextEncoder().encode('to bo'), { reliable: true, destinationIdentities: ['bo'] })`);
    await inRoom(al, `room.localParticipant.publishData(new TextEncoder().encode('lossy'), { reliable: false })`);
    await inRoom(al, `room.localParticipant.sendText('x'.repeat(100_000), { topic: 'chat' }).then(() => null)`);
    await expect.poll(() => inRoom<string[]>(bo, 'got.toSorted()')).toEqual(['lossy al 1 ', 'text al 100000', 'to all al 0 t', 'to bo al 0 ']);
    await expect.poll(() => inRoom<string[]>(cy, 'got.toSorted()')).toEqual(['lossy al 1 ', 'text al 100000', 'to all al 0 t']);
    expect(await inRoom(al, `room.localParticipant.performRpc({ destinationIdentity: 'bo', method: 'greet', payload: 'you' })`)).toBe('hello al, you');
    expect(await inRoom(al, `room.localParticipant.performRpc({ destinationIdentity: 'cy', method: 'none', payload: '' }).catch((error) => error.code)`)).toBe(1400);
  });

  test(`mutes, names and attributes by ${name}`, async ({ context, livekit }) => {
    const grants = { canUpdateOwnMetadata: true };
    const [al, bo] = await join(context, livekit, `mutes of ${name}`, ['al', 'bo'], options, grants);
    await inRoom(al, 'room.localParticipant.enableCameraAndMicrophone()');
    await expect.poll(() => seen(bo)).toEqual(['al camera subscribed on', 'al microphone subscribed on']);
    await inRoom(al, 'room.localParticipant.setMicrophoneEnabled(false).then(() => null)');
    await expect.poll(() => seen(bo)).toEqual(['al camera subscribed on', 'al microphone subscribed muted']);
    await inRoom(al, 'room.localParticipant.setMicrophoneEnabled(true).then(() => null)');
    await expect.poll(() => seen(bo)).toEqual(['al camera subscribed on', 'al microphone subscribed on']);
    // Chromium's microphone beeps.
    await expect.poll(async () => (await events(bo, 'activeSpeakersChanged')).length).toBeGreaterThan(0);
    await expect.poll(async () => (await events(al, 'connectionQualityChanged')).length).toBeGreaterThan(0);
    await inRoom(al, `room.localParticipant.setName('Alice')`);
    await inRoom(al, `room.localParticipant.setAttributes({ mood: 'good' })`);
    await expect.poll(() => inRoom(bo, `room.getParticipantByIdentity('al').name + ' ' + room.getParticipantByIdentity('al').attributes.mood`)).toBe('Alice good');
    await inRoom(al, 'room.localParticipant.setCameraEnabled(false).then(() => room.localParticipant.unpublishTrack(room.localParticipant.getTrackPublication("camera").track)).then(() => null)');
    await expect.poll(() => seen(bo)).toEqual(['al microphone subscribed on']);
  });
}

test('viewers choose layers, and the publisher sends those only that are wanted', async ({ context, livekit }) => {
  const [al] = await join(context, livekit, 'layers', ['al'], { dynacast: true });
  await inRoom(al, `room.localParticipant.setCameraEnabled(true, { resolution: { width: 1280, height: 720 } }).then(() => null)`);
  const [bo] = await join(context, livekit, 'layers', ['bo']);
  await expect.poll(() => height(bo)).toBe(720);
  const quality = (quality: string) => inRoom(bo, `room.getParticipantByIdentity('al').getTrackPublication('camera').setVideoQuality(LivekitClient.VideoQuality.${quality})`);
  await quality('LOW');
  await expect.poll(() => height(bo)).toBe(180);
  const sent = () => inRoom<string>(al, `room.localParticipant.getTrackPublication('camera').track.sender.getParameters().encodings.map((it) => it.rid + it.active).join()`);
  await expect.poll(sent).toBe('qtrue,hfalse,ffalse');
  await quality('MEDIUM');
  await expect.poll(() => height(bo)).toBe(360);
  await expect.poll(sent).toBe('qtrue,htrue,ffalse');
  await inRoom(bo, `room.getParticipantByIdentity('al').getTrackPublication('camera').setSubscribed(false)`);
  await expect.poll(sent).toBe('qfalse,hfalse,ffalse');
});

test('who may not subscribe any more loses the tracks', async ({ context, livekit }) => {
  const [al, bo, cy] = await join(context, livekit, 'permissions', ['al', 'bo', 'cy']);
  await inRoom(al, 'room.localParticipant.setCameraEnabled(true).then(() => null)');
  for (const page of [bo, cy]) await expect.poll(() => seen(page)).toEqual(['al camera subscribed on']);
  await inRoom(al, `room.localParticipant.setTrackSubscriptionPermissions(false, [{ participantIdentity: 'bo', allowAll: true }])`);
  await expect.poll(() => seen(cy)).toEqual(['al camera known on']);
  expect(await seen(bo)).toEqual(['al camera subscribed on']);
  await inRoom(al, `room.localParticipant.setTrackSubscriptionPermissions(true)`);
  await expect.poll(() => seen(cy)).toEqual(['al camera subscribed on']);
});

for (const [name, options] of [['two PeerConnections', TWO], ['one PeerConnection', {}]] as const) {
  test(`reconnects with ${name}`, async ({ context, livekit }) => {
    const [al, bo] = await join(context, livekit, `reconnects of ${name}`, ['al', 'bo'], options);
    await inRoom(al, 'room.localParticipant.setCameraEnabled(true).then(() => null)');
    await expect.poll(() => seen(bo)).toEqual(['al camera subscribed on']);
    const sid = await inRoom(al, 'room.localParticipant.sid');
    await inRoom(al, `(events.length = 0, room.simulateScenario('signal-reconnect').then(() => null))`);
    await expect.poll(async () => (await events(al, 'reconnected')).length).toBe(1);
    expect(await inRoom(al, 'room.localParticipant.sid')).toBe(sid);
    expect(await seen(bo)).toEqual(['al camera subscribed on']);
    // The first attempt to resume fails in one, none is made in the other.
    for (const scenario of ['resume-reconnect', 'full-reconnect']) {
      const before = await inRoom(al, 'room.localParticipant.sid');
      await inRoom(al, `(events.length = 0, room.simulateScenario('${scenario}').then(() => null))`);
      await expect.poll(async () => (await events(al, 'reconnected')).length, scenario).toBe(1);
      expect(await inRoom(al, 'room.localParticipant.sid'), scenario).not.toBe(before);
    }
    await expect.poll(() => seen(bo)).toEqual(['al camera subscribed on']);
    await inRoom(bo, `document.querySelectorAll('video').forEach((it) => it.remove())`);
    await inRoom(bo, `[...room.getParticipantByIdentity('al').trackPublications.values()].forEach((it) => document.body.appendChild(it.track.attach()))`);
    await expect.poll(() => inRoom(bo, `[...document.querySelectorAll('video')].some((it) => it.currentTime > 0.5)`)).toBe(true);
  });
}

test('what is encrypted end to end is seen by those only who have the key', async ({ context, livekit }) => {
  const pages: Page[] = [];
  for (const [name, key] of [['al', 'one'], ['bo', 'one'], ['cy', 'other']] as const) {
    const page = await context.newPage();
    pages.push(page);
    await openSdk(page, livekit);
    await encrypt(page, key);
    await connect(page, livekit, token(name, 'secret'));
    await inRoom(page, 'room.setE2EEEnabled(true)');
  }
  const [al, bo, cy] = pages;
  await inRoom(al, 'room.localParticipant.enableCameraAndMicrophone()');
  for (const page of [bo, cy]) await expect.poll(() => seen(page)).toEqual(['al camera subscribed on', 'al microphone subscribed on']);
  expect(await inRoom(bo, `room.getParticipantByIdentity('al').getTrackPublication('camera').isEncrypted`)).toBe(true);
  const moves = (page: Page) => inRoom(page, `[...document.querySelectorAll('video')].some((it) => it.videoWidth > 0 && it.currentTime > 0.5)`);
  await expect.poll(() => moves(bo)).toBe(true);
  await expect.poll(async () => (await events(cy, 'encryptionError')).length).toBeGreaterThan(0);
});

test('a page of the Janus API and an app of LiveKit meet in one room', async ({ context, livekit }) => {
  const [al] = await join(context, livekit, String(ROOM), ['al']);
  await inRoom(al, 'room.localParticipant.enableCameraAndMicrophone()');
  const page = await enter(context, ROOM, 'ann');
  await seenOnPage(page, 'AL');
  await expect.poll(() => inRoom(al, `[...room.remoteParticipants.values()].map((it) => it.name)`)).toEqual(['ann']);
  await expect.poll(() => inRoom(al, `[...document.querySelectorAll('video')].some((it) => it.currentTime > 0.5)`)).toBe(true);
  const { participants } = await ask(livekit, { request: 'listparticipants', room: ROOM });
  const command = { room: ROOM, secret: SECRET, id: participants.find((it: any) => it.display === 'AL').id };
  const mid = await inRoom(al, `room.localParticipant.getTrackPublication('camera').track.mediaStreamID && room.engine.pcManager.publisher.getTransceivers().find((it) => it.sender.track?.kind === 'video').mid`);
  await ask(livekit, { request: 'moderate', mid, mute: true, ...command });
  await expect.poll(() => inRoom(al, `room.localParticipant.getTrackPublication('camera').isMuted`)).toBe(true);
  await ask(livekit, { request: 'kick', ...command });
  await expect.poll(() => events(al, 'disconnected')).toEqual([['disconnected', 4]]);
});
