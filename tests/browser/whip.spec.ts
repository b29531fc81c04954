// Publishing by WHIP and playing by WHEP, with nothing but fetch and RTCPeerConnection.
import { buildSync } from 'esbuild';
import type { Page } from '@playwright/test';
import { isReference, startServer } from '../server/index.mjs';
import { expect, FIREFOX, firefoxWith, test as base } from './fixtures';
import { blankPage } from './in-page';
import { startRtspServer } from './rtsp';
import type { Server } from '../server/portunus.mjs';
import { codec, grows, mediaFlows, receivedWidth, statsOf } from './stats';

const CONFIG = `
[whip]
ice_servers = [{ url = "stun:stun.example.net" }]
allow_origins = ["*"]

[[streaming.mountpoint]]
name = "stage"
type = "whip"
id = 7
bufferkf_ms = 10000
[[streaming.mountpoint.media]]
type = "audio"
mid = "a"
[[streaming.mountpoint.media]]
type = "video"
mid = "v"

[[streaming.mountpoint]]
name = "locked"
type = "whip"
id = 9
token = "let-me-in"
pin = "1234"
[[streaming.mountpoint.media]]
type = "video"
mid = "v"

[[streaming.mountpoint]]
name = "film"
type = "live"
id = 10
filename = "${new URL('../../crates/files/tests/data/vp8-opus.webm', import.meta.url).pathname}"
`;

const test = base.extend<{}, { script: string; clientScript: string }>({
  server: [
    async ({}, use) => {
      const server = await startServer({ workers: 2, config: CONFIG });
      await use(server);
      expect(await server.stop()).toBe(0);
    },
    { scope: 'worker' },
  ],
  script: [
    async ({}, use) => {
      const entry = new URL('http-media.ts', import.meta.url).pathname;
      const { outputFiles } = buildSync({ entryPoints: [entry], bundle: true, write: false, format: 'iife' });
      await use(outputFiles[0].text);
    },
    { scope: 'worker' },
  ],
});

test.skip(isReference, 'needs mountpoints of its own');

/** A page with `HttpMedia`, of another origin than the endpoints: what it may read is what CORS allows. */
async function open(page: Page, script: string, server: Server): Promise<void> {
  await blankPage(page, { base: server.base.replace('127.0.0.1', 'localhost') }, script);
}

function run<T>(page: Page, code: string): Promise<T> {
  return page.evaluate(`(async () => { ${code} })()`) as Promise<T>;
}

async function publish(page: Page, endpoint: string, options: object = {}): Promise<void> {
  await run(page, `window.media = await HttpMedia.publish(${JSON.stringify(endpoint)}, ${JSON.stringify(options)})`);
}

async function play(page: Page, endpoint: string, options: object = {}): Promise<void> {
  await run(page, `window.media = await HttpMedia.play(${JSON.stringify(endpoint)}, ${JSON.stringify(options)})`);
}

const end = (page: Page) => run<number>(page, 'return media.end()');

for (const name of ['VP8', 'VP9', 'H264', 'AV1']) {
  test(`${name} and Opus go in by WHIP and out by WHEP`, firefoxWith(name), async ({ page, context, server, script }) => {
    await open(page, script, server);
    await publish(page, `${server.base}/whip/7`, { codec: name });
    const viewer = await context.newPage();
    await open(viewer, script, server);
    await play(viewer, `${server.base}/whep/streaming/7`);
    await mediaFlows(viewer, { audio: 'opus', video: name });
    expect(await run(page, 'return media.links')).toContain('stun:stun.example.net');
    expect(await end(viewer)).toBe(200);
    expect(await end(page)).toBe(200);
    await viewer.close();
  });
}

/** Asks the streaming plugin something over HTTP. */
async function manage(server: Server, body: object): Promise<any> {
  const post = async (path: string, request: object) => {
    const response = await fetch(server.http + path, { method: 'POST', body: JSON.stringify({ transaction: 't', ...request }) });
    return (await response.json()) as any;
  };
  const session = `/${(await post('', { janus: 'create' })).data.id}`;
  const handle = await post(session, { janus: 'attach', plugin: 'janus.plugin.streaming' });
  const answer = await post(`${session}/${handle.data.id}`, { janus: 'message', body });
  await post(session, { janus: 'destroy' });
  return answer.plugindata.data;
}

test('a file that plays for all goes out by WHEP', FIREFOX, async ({ page, server, script }) => {
  await open(page, script, server);
  await play(page, `${server.base}/whep/10`);
  await mediaFlows(page, { audio: 'opus', video: 'VP8' });
  // The file is of a second.
  await grows(page, 'inbound-rtp', 'video', 'framesDecoded', 40);
  expect(await end(page)).toBe(200);
});

test('a camera goes out by WHEP', async ({ page, server, script }) => {
  const { child, port } = await startRtspServer();
  try {
    const camera = { type: 'rtsp', id: 11, audio: true, video: true, url: `rtsp://127.0.0.1:${port}/av`, bufferkf_ms: 5000 };
    expect(await manage(server, { request: 'create', ...camera })).toMatchObject({ streaming: 'created' });
    await open(page, script, server);
    await play(page, `${server.base}/whep/11`);
    await mediaFlows(page, { audio: 'PCMA', video: 'H264' });
    expect(await end(page)).toBe(200);
    expect(await manage(server, { request: 'destroy', id: 11 })).toMatchObject({ destroyed: 11 });
  } finally {
    child.kill('SIGKILL');
  }
});

test('a viewer stays when the publisher goes, and sees the next one', async ({ page, context, server, script }) => {
  await open(page, script, server);
  await publish(page, `${server.base}/whip/7`, { codec: 'VP8' });
  const viewer = await context.newPage();
  await open(viewer, script, server);
  await play(viewer, `${server.base}/whep/7`);
  await mediaFlows(viewer, { audio: 'opus', video: 'VP8' });
  expect(await end(page)).toBe(200);
  await publish(page, `${server.base}/whip/7`, { codec: 'VP8' });
  await mediaFlows(viewer, { audio: 'opus', video: 'VP8' });
  await end(page);
  await end(viewer);
});

test('viewers follow a publisher with another codec: by a new offer, or by coming back', async ({ page, context, server, script, clientScript }) => {
  const early = await context.newPage();
  await blankPage(early, server, clientScript);
  await open(page, script, server);
  await publish(page, `${server.base}/whip/7`, { codec: 'VP8' });
  await early.evaluate(`(async () => {
    window.client = await Client.open('${server.ws}', 'janus.plugin.streaming');
    await client.watch({ id: 7 });
  })()`);
  const player = await context.newPage();
  await open(player, script, server);
  await play(player, `${server.base}/whep/7`);
  for (const viewer of [early, player]) await mediaFlows(viewer, { audio: 'opus', video: 'VP8' });
  expect(await end(page)).toBe(200);
  await publish(page, `${server.base}/whip/7`, { codec: 'H264' });
  await expect.poll(() => codec(early, 'inbound-rtp', 'video')).toBe('H264');
  await mediaFlows(early, { audio: 'opus', video: 'H264' });
  await expect.poll(() => run(player, 'return media.peer.connectionState')).not.toBe('connected');
  await play(player, `${server.base}/whep/7`);
  await mediaFlows(player, { audio: 'opus', video: 'H264' });
  await end(page);
  await early.close();
  await player.close();
});

test('ICE restarts by PATCH while media goes on', async ({ page, context, server, script }) => {
  await open(page, script, server);
  await publish(page, `${server.base}/whip/7`, { codec: 'VP8' });
  const viewer = await context.newPage();
  await open(viewer, script, server);
  await play(viewer, `${server.base}/whep/7`);
  await mediaFlows(viewer, { video: 'VP8' });
  for (const restarted of [page, viewer]) {
    const tag = await run<string>(restarted, 'return media.etag');
    await run(restarted, 'await media.restart()');
    expect(await run(restarted, 'return media.etag')).not.toBe(tag);
    const candidate = 'candidate:1 1 udp 2122260223 192.0.2.1 9 typ host';
    expect(await run(restarted, `return media.trickle(${JSON.stringify(candidate)})`)).toBe(204);
    expect(await run(restarted, `return media.trickle(${JSON.stringify(candidate)}, ${JSON.stringify(tag)})`)).toBe(412);
    await expect.poll(() => run(restarted, 'return media.peer.iceConnectionState')).toMatch(/connected|completed/);
    await grows(viewer, 'inbound-rtp', 'video', 'framesDecoded', 30);
  }
  await end(page);
  await end(viewer);
});

test('the server offers to a viewer that does not', async ({ page, context, server, script }) => {
  await open(page, script, server);
  await publish(page, `${server.base}/whip/7`, { codec: 'VP8' });
  const viewer = await context.newPage();
  await open(viewer, script, server);
  await run(viewer, `window.media = await HttpMedia.playOffered('${server.base}/whep/7')`);
  await mediaFlows(viewer, { audio: 'opus', video: 'VP8' });
  await end(viewer);
  await viewer.reload();
  await viewer.addScriptTag({ content: script });
  expect(await run(viewer, `return HttpMedia.playCounterOffer('${server.base}/whep/7', 'AV1')`)).toBe(406);
  await mediaFlows(viewer, { audio: 'opus', video: 'VP8' });
  await end(page);
});

test('simulcast goes in, and a viewer gets the best of it', async ({ page, context, server, script }) => {
  await open(page, script, server);
  await publish(page, `${server.base}/whip/7`, { codec: 'VP8', simulcast: true });
  const viewer = await context.newPage();
  await open(viewer, script, server);
  await play(viewer, `${server.base}/whep/7`);
  await mediaFlows(viewer, { video: 'VP8' });
  await expect.poll(() => receivedWidth(viewer)).toBe(640);
  expect((await statsOf(page, 'outbound-rtp', 'video')).length).toBe(3);
  await end(page);
  await end(viewer);
});

test('tokens open a mountpoint, and nothing else does', async ({ page, context, server, script }) => {
  await open(page, script, server);
  const refused = (code: string) => run<string>(page, `return ${code}.then(() => 'let in', (error) => error.message)`);
  const [whip, whep] = [`'${server.base}/whip/9'`, `'${server.base}/whep/9'`];
  expect(await refused(`HttpMedia.publish(${whip})`)).toMatch(/^401: .*Bearer/);
  expect(await refused(`HttpMedia.publish(${whip}, { token: 'wrong' })`)).toMatch(/^401:/);
  await publish(page, `${server.base}/whip/9`, { token: 'let-me-in', codec: 'VP8' });
  const second = await refused(`HttpMedia.publish(${whip}, { token: 'let-me-in' })`);
  expect(second).toMatch(/^409:/);
  expect(await refused(`HttpMedia.play(${whep}, { token: 'let-me-in' })`)).toMatch(/^401:/);
  const viewer = await context.newPage();
  await open(viewer, script, server);
  await play(viewer, `${server.base}/whep/9`, { token: '1234' });
  await mediaFlows(viewer, { video: 'VP8' });
  expect(await codec(viewer, 'inbound-rtp', 'video')).toBe('VP8');
  await end(page);
  await end(viewer);
});

test('a publisher whose page is closed gives way to the next within seconds', async ({ page, context, server, script }) => {
  const first = await context.newPage();
  await open(first, script, server);
  await publish(first, `${server.base}/whip/7`, { codec: 'VP8' });
  await expect.poll(() => run(first, 'return media.peer.connectionState')).toBe('connected');
  await first.close();
  await open(page, script, server);
  await expect
    .poll(() => run<boolean>(page, `return HttpMedia.publish('${server.base}/whip/7').then((made) => ((window.media = made), true), () => false)`), { timeout: 15_000 })
    .toBe(true);
  await end(page);
});
