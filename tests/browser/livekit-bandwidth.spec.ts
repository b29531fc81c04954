// Pauses by bandwidth: a viewer of LiveKit's protocol behind a link that carries no video for a while.
import { chromium, type Browser, type Page } from '@playwright/test';
import { isReference } from '../server/index.mjs';
import { canMakeNamespaces, makeNamespace } from '../server/namespace.mjs';
import type { Namespace } from '../server/namespace.mjs';
import { expect, test } from './fixtures';
import { connect, inRoom, openSdk, startLiveKit, token, type LiveKitServer } from './livekit';

test.skip(isReference || !canMakeNamespaces(), 'it needs a server of ours, root and network namespaces');
test.setTimeout(240_000);

let namespace: Namespace;
let server: LiveKitServer;
let inside: Browser;

test.beforeAll(async ({ launchOptions }) => {
  namespace = makeNamespace();
  server = await startLiveKit('', 'allow_pause = true');
  inside = await chromium.launch({ ...launchOptions, executablePath: namespace.wrap(launchOptions.executablePath ?? 'chromium') });
});

test.afterAll(async () => {
  await inside?.close();
  await server?.stop();
  namespace?.remove();
});

/** The states of the stream that the page was told, in order. */
const states = (page: Page) => inRoom<string[]>(page, `events.filter(([name]) => name === 'trackStreamStateChanged').map((it) => it[2])`);

const played = (page: Page) => inRoom<number>(page, `Math.max(0, ...[...document.querySelectorAll('video')].map((it) => it.getVideoPlaybackQuality().totalVideoFrames))`);

test('video pauses while the link does not carry it, and goes on when it does', async ({ context }) => {
  namespace.limit(20_000);
  const al = await context.newPage();
  await openSdk(al, server);
  await connect(al, server, token('al', 'slow'));
  await inRoom(al, `room.localParticipant.setCameraEnabled(true, { resolution: { width: 1280, height: 720 } }).then(() => null)`);
  const near = await context.newPage();
  await openSdk(near, server);
  await connect(near, server, token('bo', 'slow'));
  const far = await inside.newPage();
  const [base, livekit] = [await namespace.reach(server.base), await namespace.reach(server.livekit)];
  await openSdk(far, { ...server, base });
  await connect(far, { ...server, livekit }, token('cy', 'slow'));
  await expect.poll(() => played(far), { timeout: 60_000 }).toBeGreaterThan(30);

  namespace.limit(60);
  await expect.poll(() => states(far), { timeout: 90_000, message: 'paused' }).toEqual(['paused']);
  expect(await inRoom(far, `room.getParticipantByIdentity('al').getTrackPublication('camera').track.streamState`)).toBe('paused');
  namespace.limit(20_000);
  await expect.poll(async () => (await states(far)).at(-1), { timeout: 90_000, message: 'goes on' }).toBe('active');
  const before = await played(far);
  await expect.poll(() => played(far), { timeout: 30_000 }).toBeGreaterThan(before + 15);
  expect(await states(near), 'the other viewer is untouched').toEqual([]);
});
