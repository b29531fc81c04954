// Mountpoints that ffmpeg, GStreamer, files and cameras feed, watched in browsers.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import type { Server } from '../server/portunus.mjs';
import { expect, FIREFOX, firefoxWith, test } from './fixtures';
import { GSTREAMER, needsGstreamer } from './gstreamer';
import { blankPage, client } from './in-page';
import { startRtspServer, type RtspServer } from './rtsp';
import { grows, mediaFlows, statsOf, sum } from './stats';

const STREAMING = 'janus.plugin.streaming';

type Json = Record<string, any>;

const root = new URL('../..', import.meta.url).pathname;

let feeders: ChildProcess[] = [];

/** Starts a program that sends RTP, until the end of the test. */
function feed(program: string, line: string, input: 'ignore' | 'pipe' = 'ignore'): ChildProcess {
  const child = spawn(program, line.trim().split(/\s+/), { stdio: [input, 'ignore', 'pipe'] });
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

function sendTone(port: Json): ChildProcess {
  return feed('ffmpeg', `-v error -re -f lavfi -i sine=frequency=440 -c:a libopus -b:a 64k -f rtp rtp://127.0.0.1:${port.port}`);
}

/** A UDP port that nobody has at present. */
async function freePort(): Promise<number> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = socket.address();
  socket.close();
  await once(socket, 'close');
  return port;
}

async function results(page: Page): Promise<string[]> {
  const messages = await client<Json[]>(page, 'client.messages');
  return messages.map((message) => message.result?.status ?? message.result?.event).filter(Boolean);
}

for (const codec of ['vp8', 'vp9', 'h264']) {
  test(`ffmpeg feeds ${codec} and Opus`, firefoxWith(codec), async ({ page, server, clientScript }) => {
    await open(page, server, clientScript);
    const ports = await mountpoint(page, 7, [AUDIO, video(codec)]);
    sendVideo(codec, ports.v);
    sendTone(ports.a);
    await client(page, 'client.watch({ id: 7 })');
    await mediaFlows(page, { audio: 'opus', video: codec.toUpperCase() });
    expect(await results(page)).toEqual(['preparing', 'starting', 'started']);
  });
}

test('GStreamer feeds VP8, and is asked for a keyframe over RTCP', async ({ page, server, clientScript }) => {
  await open(page, server, clientScript);
  const { v } = await mountpoint(page, 7, [video('vp8')]);
  // What GStreamer sends and takes RTCP with are two sockets. On one port, the system gives either what comes: so both have the relay's.
  const back = await freePort();
  const relay = createSocket('udp4').bind(0, '127.0.0.1');
  await once(relay, 'listening');
  relay.on('message', (datagram, from) => relay.send(datagram, from.port === v.rtcp_port ? back : v.rtcp_port, '127.0.0.1'));
  try {
    // No keyframe comes by itself within the test.
    feed(
      'gst-launch-1.0',
      `-q rtpbin name=r videotestsrc is-live=true ! video/x-raw,width=320,height=180,framerate=25/1
       ! vp8enc deadline=1 keyframe-max-dist=100000 ! rtpvp8pay ! r.send_rtp_sink_0
       r.send_rtp_src_0 ! udpsink host=127.0.0.1 port=${v.port}
       r.send_rtcp_src_0 ! udpsink host=127.0.0.1 port=${relay.address().port} sync=false async=false
       udpsrc port=${back} ! r.recv_rtcp_sink_0`,
    );
    await client(page, 'client.watch({ id: 7 })');
    await mediaFlows(page, { video: 'VP8' });
  } finally {
    relay.close();
  }
});

test('ffmpeg feeds VP8 as SRTP', async ({ page, server, clientScript }) => {
  await open(page, server, clientScript);
  const key = 'WbTBosdVUZqEb6Htqhn+m3z7wUh4RJVR8nE15GbN';
  const { v } = await mountpoint(page, 7, [{ ...video('vp8'), rtcpport: undefined }], { srtpsuite: 80, srtpcrypto: key });
  feed(
    'ffmpeg',
    `-v error ${PICTURE} ${ENCODERS.vp8} -f rtp -srtp_out_suite AES_CM_128_HMAC_SHA1_80 -srtp_out_params ${key} srtp://127.0.0.1:${v.port}?pkt_size=1200`,
  );
  await client(page, 'client.watch({ id: 7 })');
  await mediaFlows(page, { video: 'VP8' });
});

test('ffmpeg encodes AV1, and GStreamer packetizes it, beside Opus', FIREFOX, async ({ page, server, clientScript }) => {
  needsGstreamer();
  await open(page, server, clientScript);
  const ports = await mountpoint(page, 7, [AUDIO, video('av1')]);
  // Debian's ffmpeg cannot put AV1 into RTP: "[rtp] Unsupported codec av1".
  const folder = mkdtempSync(join(tmpdir(), 'portunus-'));
  const pipe = join(folder, 'av1.ivf');
  execFileSync('mkfifo', [pipe]);
  try {
    feed('ffmpeg', `-v error -y ${PICTURE} -pix_fmt yuv420p -c:v libaom-av1 -usage realtime -cpu-used 8 -g 50 -b:v 300k -flush_packets 1 -f ivf ${pipe}`);
    feed(GSTREAMER, `filesrc location=${pipe} ! ivfparse ! av1parse ! rtpav1pay ! udpsink host=127.0.0.1 port=${ports.v.port} sync=false`, 'pipe');
    sendTone(ports.a);
    await client(page, 'client.watch({ id: 7 })');
    await mediaFlows(page, { audio: 'opus', video: 'AV1' });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

for (const [codec, encoder] of Object.entries({
  vp8: 'vp8enc deadline=1 cpu-used=8 keyframe-max-dist=25 ! rtpvp8pay',
  vp9: 'vp9enc deadline=1 cpu-used=8 keyframe-max-dist=25 ! rtpvp9pay',
  h264: 'x264enc tune=zerolatency speed-preset=ultrafast key-int-max=25 ! video/x-h264,profile=constrained-baseline ! rtph264pay config-interval=-1',
  av1: 'av1enc cpu-used=10 usage-profile=realtime keyframe-max-dist=25 ! av1parse ! rtpav1pay',
})) {
  test(`GStreamer feeds ${codec} and Opus`, async ({ page, server, clientScript }) => {
    needsGstreamer();
    await open(page, server, clientScript);
    const ports = await mountpoint(page, 7, [AUDIO, video(codec)]);
    const child = feed(
      GSTREAMER,
      `videotestsrc is-live=true ! video/x-raw,format=I420,width=320,height=180,framerate=25/1 ! ${encoder}
       ! udpsink host=127.0.0.1 port=${ports.v.port} audiotestsrc is-live=true ! audioconvert ! opusenc ! rtpopuspay
       ! udpsink host=127.0.0.1 port=${ports.a.port}`,
      // It ends with its standard input.
      'pipe',
    );
    await client(page, 'client.watch({ id: 7 })');
    await mediaFlows(page, { audio: 'opus', video: codec.toUpperCase() });
    child.stdin?.end();
  });
}

const FILES = join(root, 'crates/files/tests/data');

for (const [name, media] of Object.entries<{ audio?: string; video?: string }>({
  'vp8-opus.webm': { audio: 'opus', video: 'VP8' },
  'vp9-opus.webm': { audio: 'opus', video: 'VP9' },
  'av1.webm': { video: 'AV1' },
  'h264-opus.mp4': { audio: 'opus', video: 'H264' },
  'h264-opus.mkv': { audio: 'opus', video: 'H264' },
  'tone.opus': { audio: 'opus' },
  'tone.alaw': { audio: 'PCMA' },
  'tone.mulaw': { audio: 'PCMU' },
})) {
  test(`the file ${name} is shown, live and on demand`, media.video ? firefoxWith(name) : {}, async ({ page, server, clientScript }) => {
    for (const [id, type] of [[7, 'live'], [8, 'ondemand']] as const) {
      await open(page, server, clientScript);
      await manage(page, { request: 'destroy', id });
      const [audio, video] = [media.audio !== undefined, media.video !== undefined];
      const created = await manage(page, { request: 'create', type, id, filename: join(FILES, name), audio, video });
      expect(created.streaming, JSON.stringify(created)).toBe('created');
      await client(page, `client.watch({ id: ${id} })`);
      await mediaFlows(page, media);
      if (media.audio) await expect.poll(() => sum(page, 'inbound-rtp', 'audio', 'totalAudioEnergy')).toBeGreaterThan(0);
      // It has begun anew by then: files are of a second, and timestamps go on.
      if (media.video) await grows(page, 'inbound-rtp', 'video', 'framesDecoded', 20);
      await manage(page, { request: 'destroy', id });
    }
  });
}

/** An RTSP server, until the end of the test. */
async function rtspServer(port = 0): Promise<RtspServer> {
  const server = await startRtspServer(port);
  feeders.push(server.child);
  return server;
}

// That it is chosen by itself is seen in the test after these.
for (const transport of ['udp', 'tcp']) {
  test(`a camera's H.264 and G.711 are shown, by RTSP over ${transport}`, async ({ page, server, clientScript }) => {
    await open(page, server, clientScript);
    const { port } = await rtspServer();
    await manage(page, { request: 'destroy', id: 7 });
    const camera = { type: 'rtsp', id: 7, audio: true, video: true, rtsp_transport: transport, bufferkf_ms: 5000 };
    const login = { url: `rtsp://127.0.0.1:${port}/login`, rtsp_user: 'user', rtsp_pwd: 'secret' };
    const refused = await manage(page, { request: 'create', ...camera, ...login, rtsp_pwd: 'wrong' });
    expect(refused.error_code).toBe(456);
    const created = await manage(page, { request: 'create', ...camera, ...login });
    expect(created.streaming, JSON.stringify(created)).toBe('created');
    await client(page, 'client.watch({ id: 7 })');
    await mediaFlows(page, { audio: 'PCMA', video: 'H264' });
    await manage(page, { request: 'destroy', id: 7 });
    await expect.poll(() => results(page)).toContain('stopped');
  });
}

test('a camera that is off is waited for, and one that breaks down comes back', async ({ page, server, clientScript }) => {
  await open(page, server, clientScript);
  // A port that is free, as far as one can know.
  const { child: probe, port } = await rtspServer();
  probe.kill('SIGKILL');
  await once(probe, 'exit');
  await manage(page, { request: 'destroy', id: 7 });
  const created = await manage(page, {
    request: 'create', type: 'rtsp', id: 7, audio: true, video: true, url: `rtsp://127.0.0.1:${port}/av`,
    rtsp_failcheck: false, rtsp_reconnect_delay: 1, rtsp_conn_timeout: 2, rtsp_notify_changes: true,
  });
  expect(created.streaming, JSON.stringify(created)).toBe('created');
  const { child } = await rtspServer(port);
  await expect.poll(async () => (await manage(page, { request: 'info', id: 7 })).info.media[1].codec).toBe('h264');
  await client(page, 'client.watch({ id: 7 })');
  await mediaFlows(page, { audio: 'PCMA', video: 'H264' });
  child.kill('SIGKILL');
  const events = async () => (await client<Json[]>(page, 'client.messages')).map((message) => message.event);
  await expect.poll(events).toContain('rtsp-disconnected');
  await rtspServer(port);
  await expect.poll(events).toContain('rtsp-reconnected');
  await mediaFlows(page, { audio: 'PCMA', video: 'H264' });
  await manage(page, { request: 'destroy', id: 7 });
});

test('a kept keyframe shows the picture at once, without asking the source', async ({ page, context, server, clientScript }) => {
  await open(page, server, clientScript);
  // No RTCP: nobody can ask for a keyframe.
  const { v } = await mountpoint(page, 7, [{ ...video('vp8'), rtcpport: undefined }], { bufferkf_ms: 20_000 });
  feed('ffmpeg', `-v error ${PICTURE} -c:v libvpx -deadline realtime -cpu-used 8 -g 500 -b:v 300k -f rtp rtp://127.0.0.1:${v.port}?pkt_size=1200`);
  await expect.poll(async () => (await manage(page, { request: 'info', id: 7 })).info.media[0].age_ms).toBeLessThan(200);
  // Well after the keyframe, which comes every 20 s.
  const early = await context.newPage();
  await open(early, server, clientScript);
  await client(early, 'client.watch({ id: 7 })');
  await grows(early, 'inbound-rtp', 'video', 'framesDecoded', 40);
  await client(page, 'client.watch({ id: 7 })');
  await expect.poll(() => client(page, 'client.up')).toBe(true);
  const up = Date.now();
  await expect.poll(() => sum(page, 'inbound-rtp', 'video', 'framesDecoded'), { intervals: [20] }).toBeGreaterThan(0);
  const took = Date.now() - up;
  console.log(`    the first frame was decoded ${took} ms after webrtcup`);
  expect(took).toBeLessThan(2_000);
});

test('pause stops the media and start resumes it without a loss', FIREFOX, async ({ page, server, clientScript }) => {
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

test('a viewer is switched from one source to another, and a source restarts', FIREFOX, async ({ page, server, clientScript }) => {
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

test('messages of a data stream arrive', FIREFOX, async ({ page, server, clientScript }) => {
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
