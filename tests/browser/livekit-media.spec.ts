// What livekit-client publishes and receives: redundancy, layers of one stream, second codecs, data tracks; and moves to
// another room.
import type { Browser, BrowserContext, Page } from '@playwright/test';
import { FIREFOX_LAUNCH } from './firefox';
import { expect, FIREFOX, test as base } from './fixtures';
import { connect, inRoom, openSdk, seen, startLiveKit, token, type LiveKitServer } from './livekit';

const test = base.extend<{ firefox: Browser }, { livekit: LiveKitServer }>({
  livekit: [async ({ server }, use) => use(server as LiveKitServer), { scope: 'worker' }],
  server: [
    async ({}, use) => {
      const server = await startLiveKit();
      await use(server);
      const status = await server.stop();
      if (status !== 0) throw new Error(`The server ended with status ${status}:\n${server.log().slice(-4000)}`);
    },
    { scope: 'worker' },
  ],
  /** A Firefox beside the Chromium of the test. */
  firefox: async ({ playwright }, use) => {
    const browser = await playwright.firefox.launch({ ...FIREFOX_LAUNCH, channel: 'moz-firefox', headless: true });
    await use(browser);
    await browser.close();
  },
});

/** Opens a page for a participant. */
async function join(context: BrowserContext, livekit: LiveKitServer, room: string, name: string, options: object = {}): Promise<Page> {
  const page = await context.newPage();
  await openSdk(page, livekit);
  await connect(page, livekit, token(name, room), options);
  return page;
}

interface Received {
  codec: string;
  energy: number;
}

/** What a page receives of one kind, in all its PeerConnections. */
const received = (page: Page, kind: 'audio' | 'video') =>
  inRoom<Received[]>(
    page,
    `(async () => {
      const all = [];
      const { publisher, subscriber } = room.engine.pcManager;
      for (const transport of new Set([publisher, subscriber])) {
        const stats = transport && new Map(await transport.getStats());
        for (const it of stats?.values() ?? []) {
          if (it.type !== 'inbound-rtp' || it.kind !== '${kind}' || !it.packetsReceived) continue;
          const codec = stats.get(it.codecId)?.mimeType ?? '';
          all.push({ codec, energy: it.totalAudioEnergy ?? 0 });
        }
      }
      return all;
    })()`,
  );

/** Whether each sound that arrives is heard. */
const heard = async (page: Page) => (await received(page, 'audio')).map((it) => it.energy > 0);

const moves = (page: Page) => inRoom<boolean>(page, `[...document.querySelectorAll('video')].some((it) => it.videoWidth > 0 && it.currentTime > 0.5)`);

/** The greatest height of a picture that is received. */
const height = (page: Page) => inRoom<number>(page, `Math.max(0, ...[...document.querySelectorAll('video')].map((it) => it.videoHeight))`);

interface Frames {
  /** Those with the payload type of redundant audio (RFC 2198). */
  red: number;
  /** Of these, those with blocks of former packets. */
  redundant: number;
  /** All others. */
  plain: number;
}

/** Counts the frames of audio that arrive at a page, as `window.frames`. */
const countFrames = (page: Page) =>
  inRoom(
    page,
    `(() => {
      const script = \`onrtctransform = ({ transformer: { readable, writable, options } }) => readable.pipeThrough(new TransformStream({
        transform(frame, controller) {
          postMessage([frame.getMetadata().payloadType === options.red, new Uint8Array(frame.data)[0] >> 7]);
          controller.enqueue(frame);
        },
      })).pipeTo(writable);\`;
      const worker = new Worker(URL.createObjectURL(new Blob([script], { type: 'text/javascript' })));
      const counted = { red: 0, redundant: 0, plain: 0 };
      worker.onmessage = ({ data: [isRed, more] }) => {
        counted[isRed ? 'red' : 'plain'] += 1;
        counted.redundant += isRed ? more : 0;
      };
      window.counted = counted;
      const { receiver } = [...room.remoteParticipants.values()][0].getTrackPublication('microphone').track;
      const red = receiver.getParameters().codecs.find((it) => it.mimeType === 'audio/red')?.payloadType;
      receiver.transform = new RTCRtpScriptTransform(worker, { red });
    })()`,
  );

const frames = (page: Page) => inRoom<Frames>(page, 'counted');

test('sound that is negotiated with redundancy is heard, and Firefox subscribes to it without', async ({ context, livekit, firefox }) => {
  const al = await join(context, livekit, 'red', 'al');
  const bo = await join(context, livekit, 'red', 'bo', { singlePeerConnection: false });
  const cy = await join(await firefox.newContext(), livekit, 'red', 'cy');
  await inRoom(al, 'room.localParticipant.setMicrophoneEnabled(true).then(() => null)');
  for (const page of [bo, cy]) await expect.poll(() => seen(page)).toEqual(['al microphone subscribed on']);
  expect(await inRoom(bo, `[...room.remoteParticipants.values()][0].getTrackPublication('microphone').trackInfo.mimeType`)).toBe('audio/red');
  await expect.poll(() => heard(bo)).toEqual([true]);
  // Each packet has the former one, too.
  await countFrames(bo);
  await expect.poll(async () => (await frames(bo)).redundant).toBeGreaterThan(50);
  expect((await frames(bo)).plain).toBe(0);
});

test('a publisher can do without redundancy, and send stereo', async ({ context, livekit }) => {
  const al = await join(context, livekit, 'plain', 'al');
  const bo = await join(context, livekit, 'plain', 'bo');
  await inRoom(al, `room.localParticipant.setMicrophoneEnabled(true, { channelCount: 2 }, { red: false, dtx: false, forceStereo: true }).then(() => null)`);
  await expect.poll(() => seen(bo)).toEqual(['al microphone subscribed on']);
  await expect.poll(() => heard(bo)).toEqual([true]);
  const info = await inRoom<{ stereo: boolean; disableDtx: boolean; disableRed: boolean }>(
    bo,
    `(({ stereo, disableDtx, disableRed }) => ({ stereo, disableDtx, disableRed }))(room.getParticipantByIdentity('al').getTrackPublication('microphone').trackInfo)`,
  );
  expect(info).toEqual({ stereo: true, disableDtx: true, disableRed: true });
});

for (const [codec, mode] of [['vp9', 'L3T3_KEY'], ['av1', 'L3T3_KEY']] as const) {
  test(`viewers choose layers of one stream of ${codec}`, async ({ context, livekit }) => {
    const al = await join(context, livekit, `layers of ${codec}`, 'al', { dynacast: true });
    await inRoom(al, `room.localParticipant.setCameraEnabled(true, { resolution: { width: 1280, height: 720 } },
      { videoCodec: '${codec}', scalabilityMode: '${mode}', backupCodec: false }).then(() => null)`);
    const bo = await join(context, livekit, `layers of ${codec}`, 'bo');
    const cy = await join(context, livekit, `layers of ${codec}`, 'cy', { singlePeerConnection: false });
    await expect.poll(() => height(bo), { timeout: 60_000 }).toBe(720);
    const quality = (page: Page, name: string) =>
      inRoom(page, `room.getParticipantByIdentity('al').getTrackPublication('camera').setVideoQuality(LivekitClient.VideoQuality.${name})`);
    await quality(bo, 'LOW');
    await expect.poll(() => height(bo)).toBe(180);
    await expect.poll(() => height(cy), { timeout: 60_000 }).toBe(720);
    expect(await height(bo)).toBe(180);
    await quality(bo, 'MEDIUM');
    await expect.poll(() => height(bo)).toBe(360);
    // The publisher sends what somebody wants.
    await quality(cy, 'LOW');
    await expect.poll(() => height(cy)).toBe(180);
    await quality(bo, 'HIGH');
    await expect.poll(() => height(bo), { timeout: 60_000 }).toBe(720);
    expect((await received(bo, 'video')).map((it) => it.codec.toLowerCase())).toEqual([`video/${codec}`]);
  });
}

/** Has the PeerConnections of a page accept no VP9. */
function withoutVp9(): void {
  const { prototype } = RTCPeerConnection;
  const original = prototype.createAnswer;
  prototype.createAnswer = async function (this: RTCPeerConnection, ...options: any[]) {
    for (const transceiver of this.getTransceivers()) {
      if (transceiver.receiver.track.kind !== 'video') continue;
      const { codecs } = RTCRtpReceiver.getCapabilities('video')!;
      transceiver.setCodecPreferences(codecs.filter((it) => !/vp9/i.test(it.mimeType)));
    }
    return (original as any).apply(this, options);
  } as any;
}

for (const policy of ['SIMULCAST', 'PREFER_REGRESSION']) {
  test(`who does not take the codec of a track gets its backup: ${policy}`, async ({ context, livekit }) => {
    const room = `backup ${policy}`;
    const al = await join(context, livekit, room, 'al', { dynacast: true });
    await inRoom(al, `room.localParticipant.setCameraEnabled(true, { resolution: { width: 640, height: 360 } },
      { videoCodec: 'vp9', backupCodec: { codec: 'vp8' }, backupCodecPolicy: LivekitClient.BackupCodecPolicy.${policy} }).then(() => null)`);
    const bo = await join(context, livekit, room, 'bo');
    await expect.poll(() => moves(bo)).toBe(true);
    expect((await received(bo, 'video')).map((it) => it.codec)).toEqual(['video/VP9']);
    const cy = await context.newPage();
    await cy.addInitScript(withoutVp9);
    await openSdk(cy, livekit);
    await connect(cy, livekit, token('cy', room), { singlePeerConnection: false });
    await expect.poll(() => moves(cy), { timeout: 60_000 }).toBe(true);
    await expect.poll(async () => (await received(cy, 'video')).map((it) => it.codec)).toEqual(['video/VP8']);
    if (policy === 'PREFER_REGRESSION') {
      await expect.poll(async () => (await received(bo, 'video')).map((it) => it.codec)).toContain('video/VP8');
    } else {
      expect((await received(bo, 'video')).map((it) => it.codec)).toEqual(['video/VP9']);
    }
  });
}

for (const [name, options] of [['two PeerConnections', { singlePeerConnection: false }], ['one PeerConnection', {}]] as const) {
  test(`data tracks by ${name}`, FIREFOX, async ({ context, livekit }) => {
    const room = `data tracks of ${name}`;
    const al = await join(context, livekit, room, 'al', options);
    const bo = await join(context, livekit, room, 'bo', options);
    await inRoom(bo, `(window.frames = [], room.on('dataTrackPublished', async (track) => {
      for await (const frame of track.subscribe()) window.frames.push(new TextDecoder().decode(frame.payload));
    }), null)`);
    await inRoom(al, `room.localParticipant.publishDataTrack({ name: 'place' }).then((track) => { window.place = track; return null; })`);
    // The first frames are lost until somebody receives them.
    await expect
      .poll(async () => {
        await inRoom(al, `(place.tryPush({ payload: new TextEncoder().encode('here') }), null)`);
        return inRoom<string[]>(bo, 'window.frames');
      })
      .toContain('here');
    await inRoom(al, `place.unpublish().then(() => null)`);
    await expect.poll(() => inRoom(bo, `events.some(([name]) => name === 'dataTrackUnpublished')`)).toBe(true);
  });
}

test('a participant that is moved is in the other room, with its tracks', async ({ context, livekit }) => {
  const al = await join(context, livekit, 'den', 'al');
  const bo = await join(context, livekit, 'attic', 'bo');
  await inRoom(al, 'room.localParticipant.enableCameraAndMicrophone()');
  const response = await fetch(`${livekit.livekit.replace('ws', 'http')}/twirp/livekit.RoomService/MoveParticipant`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${token('admin', 'den', { roomAdmin: true, destinationRoom: 'attic' })}`,
    },
    body: JSON.stringify({ room: 'den', identity: 'al', destination_room: 'attic' }),
  });
  expect(response.status, await response.text()).toBe(200);
  await expect.poll(() => seen(bo)).toEqual(['al camera subscribed on', 'al microphone subscribed on']);
  await expect.poll(() => moves(bo)).toBe(true);
  expect(await inRoom(al, 'room.name')).toBe('attic');
  expect(await inRoom(al, `events.map(([name]) => name).filter((name) => ['moved', 'reconnected'].includes(name))`)).toEqual(['moved', 'reconnected']);
});
