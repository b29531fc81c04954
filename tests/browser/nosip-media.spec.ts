// What is heard in NoSIP calls: between two browsers whose SDP the test carries from one to the other, and with far ends without a browser.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrowserContext, Page } from '@playwright/test';
import { isReference, startServer } from '../server/index.mjs';
import type { Server } from '../server/portunus.mjs';
import { giveVoices, hears, TONES } from './audio';
import { expect, test as base } from './fixtures';
import { AUDIO, blankPage, client } from './in-page';
import { grows, sum } from './stats';

/** Ports of far ends that are no browsers. */
const PORT = 20_000 + (process.pid % 1_000) * 20;

const test = base.extend<{ folder: string; run: (line: string) => ChildProcess }, { calls: Server }>({
  calls: [
    async ({}, use) => {
      const folder = mkdtempSync(join(tmpdir(), 'portunus-nosip-'));
      const config = `[nosip]\nlocal_ip = "127.0.0.1"\ntranscoding = true\n[recording]\ndir = ${JSON.stringify(folder)}\n`;
      const server = await startServer({ workers: 2, config });
      await use(Object.assign(server, { folder }));
      await server.stop();
      rmSync(folder, { recursive: true });
    },
    { scope: 'worker' },
  ],
  folder: async ({ calls }, use) => use((calls as Server & { folder: string }).folder),
  /** Runs ffmpeg until the test ends. */
  run: async ({}, use) => {
    const running: ChildProcess[] = [];
    await use((line) => {
      const child = spawn('ffmpeg', ['-v', 'error', '-y', ...line.split(' ')], { stdio: 'ignore' });
      running.push(child);
      return child;
    });
    running.forEach((child) => child.kill('SIGKILL'));
  },
});
test.skip(isReference, 'needs networks that may be sent to');

/** A tab with a client of the plugin, which talks with a tone if it has one. */
async function open(context: BrowserContext, server: Server, script: string, tone?: number): Promise<Page> {
  const page = await context.newPage();
  await blankPage(page, server, script, tone ? `?tone=${tone}` : '');
  await client(page, `window.client = await Client.open(${JSON.stringify(server.ws)}, 'janus.plugin.nosip'), null`);
  return page;
}

const ask = (page: Page, body: object) => client<any>(page, `(await client.ask(${JSON.stringify(body)})).data`);
const make = (page: Page, tracks: string, more: object = {}) =>
  client<any>(page, `client.make([${tracks}], ${JSON.stringify({ request: 'generate', ...more })})`);
const take = (page: Page, type: string, sdp: string, tracks = '', more: object = {}) =>
  client<any[]>(page, `client.take(${JSON.stringify({ request: 'process', type, sdp, ...more })}, [${tracks}], { request: 'generate' })`);

/** One calls the other; gives the SDP of both. */
async function connect(caller: Page, callee: Page, tracks: string, srtp: object = {}): Promise<{ offer: string; answer: string; told: any[] }> {
  const { result: offered } = await make(caller, tracks, srtp);
  expect(offered).toMatchObject({ event: 'generated', type: 'offer' });
  const [taken, made] = await take(callee, 'offer', offered.sdp, tracks);
  expect(made.result).toMatchObject({ event: 'generated', type: 'answer' });
  const [accepted] = await take(caller, 'answer', made.result.sdp);
  return { offer: offered.sdp, answer: made.result.sdp, told: [taken.result, accepted.result] };
}

const up = (page: Page) => expect.poll(() => client(page, 'client.up')).toBe(true);

/** How loud a file is around a frequency, in dB. */
function loudness(file: string, frequency: number): number {
  const filter = `bandpass=f=${frequency}:width_type=h:w=20,bandpass=f=${frequency}:width_type=h:w=20,volumedetect`;
  const said = execFileSync('sh', ['-c', `ffmpeg -hide_banner -i "$0" -af ${filter} -f null - 2>&1`, file]).toString();
  return Number(/mean_volume: (\S+) dB/.exec(said)?.[1]);
}

const hasTone = (file: string, frequency: number) =>
  loudness(file, frequency) > -45 && loudness(file, frequency) - loudness(file, 3_300) > 20;

test('sound by SRTP both ways; a far end holds the call and goes on; both are recorded; the end', async ({ context, calls, clientScript, folder }) => {
  await giveVoices(context);
  const ann = await open(context, calls, clientScript, TONES.ann);
  const ben = await open(context, calls, clientScript, TONES.ben);
  const { answer, told } = await connect(ann, ben, AUDIO, { srtp: 'sdes_optional', srtp_profile: 'AES_CM_128_HMAC_SHA1_32' });
  expect(answer).toMatch(/m=audio \d+ RTP\/AVP [^]*a=crypto:1 AES_CM_128_HMAC_SHA1_32 inline:/);
  expect(told.map((result) => result.srtp)).toEqual(['sdes_optional', 'sdes_optional']);
  await hears(ann, 'ben');
  await hears(ben, 'ann');
  const recording = { request: 'recording', audio: true, peer_audio: true };
  expect((await ask(ann, { ...recording, action: 'start', filename: 'plain', record_format: 'opus' })).result.event).toBe('recordingupdated');
  await hears(ben, 'ann');

  // As if ben's side asked for it by its own signalling.
  await take(ann, 'offer', answer.replace('a=sendrecv', 'a=sendonly'), AUDIO);
  await hears(ben);
  await hears(ann, 'ben');
  await take(ann, 'offer', answer, AUDIO);
  await hears(ben, 'ann');

  await ask(ann, { ...recording, action: 'stop' });
  await expect.poll(() => hasTone(join(folder, 'plain-user.opus'), TONES.ann)).toBe(true);
  await expect.poll(() => hasTone(join(folder, 'plain-peer.opus'), TONES.ben)).toBe(true);

  await ask(ann, { request: 'hangup' });
  await expect.poll(() => client(ann, 'client.up')).toBe(false);
  // Nobody takes what the other one sends: its call ends too.
  await expect.poll(() => client(ben, 'client.up')).toBe(false);
});

test('ffmpeg is a far end of PCMU, and hears the browser by a forwarder', async ({ context, calls, clientScript, folder, run }) => {
  await giveVoices(context);
  const ann = await open(context, calls, clientScript, TONES.ann);
  const far = `v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio ${PORT} RTP/AVP 0\r\n`;
  const [taken, made] = await take(ann, 'offer', far, AUDIO);
  expect(taken.result.event).toBe('processed');
  const port = /m=audio (\d+) RTP\/AVP 0\r\n/.exec(made.result.sdp)?.[1];
  run(`-re -f lavfi -i sine=frequency=${TONES.file}:sample_rate=8000 -c:a pcm_mulaw -f rtp rtp://127.0.0.1:${port}?localrtpport=${PORT}`);
  await up(ann);
  await hears(ann, 'file');

  // What ann says, in G.711 as the far end gets it.
  const description = join(folder, 'forward.sdp');
  writeFileSync(description, far.replace(String(PORT), String(PORT + 4)));
  const heard = join(folder, 'forward.wav');
  const receiver = run(`-protocol_whitelist file,udp,rtp -i ${description} -t 3 ${heard}`);
  const stream = { type: 'audio', host: '127.0.0.1', port: PORT + 4 };
  const { result } = await ask(ann, { request: 'rtp_forward', streams: [stream] });
  expect(result.forwarders).toMatchObject([{ ...stream, media: 'audio' }]);
  await new Promise((done) => receiver.once('exit', done));
  expect(hasTone(heard, TONES.ann)).toBe(true);
  const id = result.forwarders[0].stream_id;
  expect((await ask(ann, { request: 'stop_rtp_forward', stream_id: id })).result).toEqual({ event: 'stop_rtp_forward', stream_id: id });
  expect((await ask(ann, { request: 'listforwarders' })).result.rtp_forwarders).toEqual([]);
});

test('who has Opus only hears a far end of A-law, and is heard', async ({ context, calls, clientScript, folder, run }) => {
  await giveVoices(context);
  const ann = await open(context, calls, clientScript, TONES.ann);
  const far = (port: number) =>
    `v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio ${port} RTP/AVP 8\r\n`;
  const only = `(jsep) => {
    const opus = /a=rtpmap:(\\d+) opus/.exec(jsep.sdp)[1];
    jsep.sdp = jsep.sdp.replace(/(m=audio \\S+ \\S+) .*/, '$1 ' + opus)
      .replace(/a=(rtpmap|fmtp|rtcp-fb):(\\d+) .*\\r\\n/g, (line, _, pt) => (pt === opus ? line : ''));
  }`;
  const { result } = await client<any>(ann, `client.make([${AUDIO}], { request: 'generate' }, { customizeSdp: ${only} })`);
  expect(result.sdp).toMatch(/m=audio \d+ RTP\/AVP 111 9 8 0\r\n/);
  const port = /m=audio (\d+) /.exec(result.sdp)?.[1];
  // What listens and what speaks are two programs, each with a port: the far end moves from one to the other.
  run(`-re -f lavfi -i sine=frequency=${TONES.file}:sample_rate=8000 -c:a pcm_alaw -f rtp rtp://127.0.0.1:${port}?localrtpport=${PORT + 16}`);
  const description = join(folder, 'far.sdp');
  writeFileSync(description, far(PORT + 18));
  const heard = join(folder, 'far.wav');
  const receiver = run(`-protocol_whitelist file,udp,rtp -i ${description} -t 3 ${heard}`);
  await take(ann, 'answer', far(PORT + 18));
  await new Promise((done) => receiver.once('exit', done));
  await take(ann, 'offer', far(PORT + 16), AUDIO);
  expect(hasTone(heard, TONES.ann)).toBe(true);
  await hears(ann, 'file');
});

test('a far end that moves is followed, and strangers are not heard', async ({ context, calls, clientScript, run }) => {
  const page = await open(context, calls, clientScript);
  const far = (port: number) =>
    `v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio ${port} RTP/AVP 8\r\n`;
  const { result } = await make(page, AUDIO);
  await take(page, 'answer', far(PORT + 8));
  await up(page);
  const port = /m=audio (\d+) /.exec(result.sdp)?.[1];
  const speak = (from: number) =>
    run(`-re -f lavfi -i sine=frequency=440:sample_rate=8000 -c:a pcm_alaw -f rtp rtp://127.0.0.1:${port}?localrtpport=${from}`);
  const stranger = speak(PORT + 12);
  speak(PORT + 8);
  await grows(page, 'inbound-rtp', 'audio', 'packetsReceived', 50);
  stranger.kill('SIGKILL');
  const handle = async () => {
    const id = await client<number>(page, 'client.handle.getId()');
    const session = await client<number>(page, 'client.janus.getSessionId()');
    const answer = await fetch(`${calls.admin}/${session}/${id}`, {
      method: 'POST',
      body: JSON.stringify({ janus: 'handle_info', transaction: 't' }),
    });
    return (await answer.json()).info.plugin_specific.legs.audio;
  };
  expect((await handle()).strangers).toBeGreaterThan(0);
  speak(PORT + 16);
  await take(page, 'offer', far(PORT + 16), AUDIO);
  await grows(page, 'inbound-rtp', 'audio', 'packetsReceived', 50);
  expect((await handle()).remote).toBe(`127.0.0.1:${PORT + 16}`);
  expect(await sum(page, 'inbound-rtp', 'audio', 'packetsLost')).toBeLessThan(5);
});
