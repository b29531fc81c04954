// Mountpoints that ffmpeg and GStreamer feed, watched in Chromium.
import { spawn, type ChildProcess } from 'node:child_process';
import type { Page } from '@playwright/test';
import type { Server } from '../server/portunus.mjs';
import { expect, test } from './fixtures';
import { blankPage, client } from './in-page';
import { grows, mediaFlows, statsOf, sum } from './stats';

const STREAMING = 'janus.plugin.streaming';

type Json = Record<string, any>;

let feeders: ChildProcess[] = [];

/** Starts a program that sends RTP, until the end of the test. */
function feed(program: string, line: string): ChildProcess {
  const child = spawn(program, line.trim().split(/\s+/), { stdio: ['ignore', 'ignore', 'pipe'] });
  let output = '';
  child.stderr?.on('data', (text) => (output = (output + text).slice(-4000)));
  child.on('exit', (status) => status && console.log(`    ${program} ended with ${status}: ${output}`));
  feeders.push(child);
  return child;
}

const PICTURE = '-re -f lavfi -i testsrc2=size=320x180:rate=25';

const ENCODERS: Record<string, string> = {
  vp8: '-c:v libvpx -deadline realtime -cpu-used 8 -g 50 -b:v 300k',
  vp9: '-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 50 -b:v 300k -strict experimental',
  h264: '-c:v libx264 -preset ultrafast -tune zerolatency -profile:v baseline -pix_fmt yuv420p -g 50 -b:v 300k -bf 0',
};

const BASELINE = 'profile-level-id=42e01f;packetization-mode=1';

test.afterEach(() => {
  for (const child of feeders) child.kill('SIGKILL');
  feeders = [];
});

async function open(page: Page, server: Server, script: string): Promise<void> {
  await blankPage(page, server, script);
  await page.evaluate(`(async () => { window.client = await Client.open('${server.ws}', '${STREAMING}'); })()`);
}

/** A request that is answered at once. */
function manage(page: Page, body: Json): Promise<Json> {
  return page.evaluate(
    (body) => new Promise<any>((success, error) => (window as any).client.handle.send({ message: body, success, error })),
    body,
  );
}

/** A mountpoint with these streams; gives the ports by mid. */
async function mountpoint(page: Page, id: number, media: Json[], options: Json = {}): Promise<Record<string, Json>> {
  await manage(page, { request: 'destroy', id });
  const created = await manage(page, { request: 'create', type: 'rtp', id, media, ...options });
  expect(created.streaming, JSON.stringify(created)).toBe('created');
  return Object.fromEntries(created.stream.ports.map((port: Json) => [port.mid, port]));
}

const AUDIO = { type: 'audio', mid: 'a', port: 0, pt: 111, codec: 'opus' };

function video(codec: string): Json {
  return { type: 'video', mid: 'v', port: 0, rtcpport: 0, pt: 96, codec, fmtp: codec === 'h264' ? BASELINE : undefined };
}

function sendVideo(codec: string, port: Json): ChildProcess {
  return feed('ffmpeg', `-v error ${PICTURE} ${ENCODERS[codec]} -f rtp rtp://127.0.0.1:${port.port}?rtcpport=${port.rtcp_port}&pkt_size=1200`);
}

async function results(page: Page): Promise<string[]> {
  const messages = await client<Json[]>(page, 'client.messages');
  return messages.map((message) => message.result?.status ?? message.result?.event).filter(Boolean);
}

for (const codec of ['vp8', 'vp9', 'h264']) {
  test(`ffmpeg feeds ${codec} and Opus`, async ({ page, server, clientScript }) => {
    await open(page, server, clientScript);
    const ports = await mountpoint(page, 7, [AUDIO, video(codec)]);
    sendVideo(codec, ports.v);
    feed('ffmpeg', `-v error -re -f lavfi -i sine=frequency=440 -c:a libopus -b:a 64k -f rtp rtp://127.0.0.1:${ports.a.port}`);
    await client(page, 'client.watch({ id: 7 })');
    await mediaFlows(page, { audio: 'opus', video: codec.toUpperCase() });
    expect(await results(page)).toEqual(['preparing', 'starting', 'started']);
  });
}

test('GStreamer feeds VP8, and is asked for a keyframe over RTCP', async ({ page, server, clientScript }) => {
  await open(page, server, clientScript);
  const { v } = await mountpoint(page, 7, [video('vp8')]);
  // No keyframe comes by itself within the test.
  const back = v.rtcp_port + 1;
  feed(
    'gst-launch-1.0',
    `-q rtpbin name=r videotestsrc is-live=true ! video/x-raw,width=320,height=180,framerate=25/1
     ! vp8enc deadline=1 keyframe-max-dist=100000 ! rtpvp8pay ! r.send_rtp_sink_0
     r.send_rtp_src_0 ! udpsink host=127.0.0.1 port=${v.port}
     r.send_rtcp_src_0 ! udpsink host=127.0.0.1 port=${v.rtcp_port} bind-port=${back} sync=false async=false
     udpsrc port=${back} ! r.recv_rtcp_sink_0`,
  );
  await client(page, 'client.watch({ id: 7 })');
  await mediaFlows(page, { video: 'VP8' });
});

test('a kept keyframe shows the picture at once, without asking the source', async ({ page, server, clientScript }) => {
  await open(page, server, clientScript);
  // No RTCP: nobody can ask for a keyframe.
  const { v } = await mountpoint(page, 7, [{ ...video('vp8'), rtcpport: undefined }], { bufferkf_ms: 20_000 });
  feed('ffmpeg', `-v error ${PICTURE} -c:v libvpx -deadline realtime -cpu-used 8 -g 500 -b:v 300k -f rtp rtp://127.0.0.1:${v.port}?pkt_size=1200`);
  await expect.poll(async () => (await manage(page, { request: 'info', id: 7 })).info.media[0].age_ms).toBeLessThan(200);
  // Well after the keyframe, which comes every 20 s.
  await page.evaluate(() => new Promise((done) => setTimeout(done, 1_500)));
  await client(page, 'client.watch({ id: 7 })');
  await expect.poll(() => client(page, 'client.up')).toBe(true);
  const up = Date.now();
  await expect.poll(() => sum(page, 'inbound-rtp', 'video', 'framesDecoded'), { intervals: [20] }).toBeGreaterThan(0);
  const took = Date.now() - up;
  console.log(`    the first frame was decoded ${took} ms after webrtcup`);
  expect(took).toBeLessThan(2_000);
});

test('pause stops the media and start resumes it without a loss', async ({ page, server, clientScript }) => {
  await open(page, server, clientScript);
  const { v } = await mountpoint(page, 7, [video('vp8')]);
  sendVideo('vp8', v);
  await client(page, 'client.watch({ id: 7 })');
  await mediaFlows(page, { video: 'VP8' });
  await page.evaluate(() => (window as any).client.handle.send({ message: { request: 'pause' } }));
  await expect.poll(() => results(page)).toContain('pausing');
  const packets = () => sum(page, 'inbound-rtp', 'video', 'packetsReceived');
  await expect.poll(async () => {
    const before = await packets();
    await page.evaluate(() => new Promise((done) => setTimeout(done, 300)));
    return (await packets()) - before;
  }).toBe(0);
  await page.evaluate(() => (window as any).client.handle.send({ message: { request: 'start' } }));
  await grows(page, 'inbound-rtp', 'video', 'framesDecoded', 20);
  const [inbound] = await statsOf(page, 'inbound-rtp', 'video');
  expect(inbound.packetsLost).toBe(0);
});

test('a viewer is switched from one source to another, and a source restarts', async ({ page, server, clientScript }) => {
  await open(page, server, clientScript);
  const one = await mountpoint(page, 7, [video('vp8')]);
  const two = await mountpoint(page, 8, [video('vp8')]);
  sendVideo('vp8', one.v);
  const other = sendVideo('vp8', two.v);
  await client(page, 'client.watch({ id: 7 })');
  await mediaFlows(page, { video: 'VP8' });
  for (const id of [8, 7, 8]) {
    await page.evaluate((id) => (window as any).client.handle.send({ message: { request: 'switch', id } }), id);
    await grows(page, 'inbound-rtp', 'video', 'framesDecoded', 30);
  }
  other.kill('SIGKILL');
  sendVideo('vp8', two.v);
  await grows(page, 'inbound-rtp', 'video', 'framesDecoded', 60);
  const [inbound] = await statsOf(page, 'inbound-rtp', 'video');
  expect(inbound.packetsLost).toBe(0);
  await manage(page, { request: 'destroy', id: 8 });
  await expect.poll(() => results(page)).toContain('stopped');
  await expect.poll(() => client(page, 'client.up')).toBe(false);
});

test('messages of a data stream arrive', async ({ page, server, clientScript }) => {
  const { createSocket } = await import('node:dgram');
  await open(page, server, clientScript);
  const { d } = await mountpoint(page, 7, [{ type: 'data', mid: 'd', port: 0, buffermsg: true }]);
  const socket = createSocket('udp4');
  socket.send('before', d.port, '127.0.0.1');
  await client(page, 'client.watch({ id: 7 })');
  await expect.poll(() => client(page, 'client.received')).toContain('before');
  socket.send('hello', d.port, '127.0.0.1');
  await expect.poll(() => client(page, 'client.received')).toContain('hello');
  socket.close();
});
