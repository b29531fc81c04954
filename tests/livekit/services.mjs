// A server with the services Egress, Ingress and SIP, LiveKit's server SDK for Node beside it, and a film that ffmpeg has made.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { promisify } from 'node:util';
import {
  EgressClient, EgressStatus, EncodingOptions, IngressClient, IngressInput, RoomServiceClient, SipClient, TwirpError, WebhookReceiver,
} from 'livekit-server-sdk';
import { freeTcpPort, freeUdpPorts } from '../server/ports.mjs';
import { startLiveKit } from './server.mjs';
import { KEY, SECRET } from './tokens.mjs';

export const run = promisify(execFile);

/** Why the tests are skipped, if they are. */
export const skip = process.env.LIVEKIT_URL && 'another server';

/** The bytes of two seconds or more of a recorded tone (96 kbit/s), and of pictures (3 Mbit/s, which an ingress encodes at most). */
export const [SOUND, FILM] = [24_000, 750_000];

/** The bytes of some seconds of what a telephone says. */
export const CALL = 12_000;

/** Pictures as small as those of the film, which a busy machine encodes in time. */
export const SMALL = new EncodingOptions({ width: 320, height: 240, framerate: 15, videoBitrate: 500 });

/** The seconds of the film. */
const LENGTH = 50;

/**
 * Starts everything before the tests of a file, and ends it after them.
 * @returns what is filled before the first test: clients of the services, the events that webhooks have told, the folder of the recordings
 *   and the port for SIP
 */
export function services() {
  const it = { folder: '', events: [], sipPort: 0 };
  let server;
  let media;
  let hooks;

  before(async () => {
    if (skip) return;
    it.folder = await mkdtemp(join(tmpdir(), 'portunus-services-'));
    const film = join(it.folder, 'film.mp4');
    await run('ffmpeg', ['-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=size=320x240:rate=15', '-f', 'lavfi', '-i', 'sine=frequency=440',
      '-t', `${LENGTH}`, '-c:v', 'libx264', '-preset', 'ultrafast', '-c:a', 'aac', '-movflags', '+faststart', film]);
    media = createServer((_, response) => createReadStream(film).pipe(response));
    await new Promise((done) => media.listen(0, '127.0.0.1', done));
    it.film = `http://127.0.0.1:${media.address().port}/film.mp4`;
    const receiver = new WebhookReceiver(KEY, SECRET);
    hooks = createServer(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += chunk;
      it.events.push(await receiver.receive(body, request.headers.authorization));
      response.end();
    });
    await new Promise((done) => hooks.listen(0, '127.0.0.1', done));
    it.sipPort = await freeUdpPorts(1);
    const rtmp = await freeTcpPort();
    server = await startLiveKit(`webhook = { urls = ["http://127.0.0.1:${hooks.address().port}/"], api_key = "${KEY}" }
[livekit.ingress]
rtmp_port = ${rtmp}
rtmp_ports = 1
rtmp_host = "127.0.0.1"
[livekit.egress]
stream_restarts = 1
[recording]
dir = "${it.folder}"
[sip]
listen = ["udp:${it.sipPort}"]
local_ip = "127.0.0.1"`);
    it.rooms = new RoomServiceClient(server.url, KEY, SECRET);
    it.egress = new EgressClient(server.url, KEY, SECRET);
    it.ingress = new IngressClient(server.url, KEY, SECRET);
    it.sip = new SipClient(server.url, KEY, SECRET);
  });

  after(async () => {
    await server?.stop();
    hooks?.close();
    media?.close();
    media?.closeAllConnections();
    if (it.folder) await rm(it.folder, { recursive: true });
  });
  return it;
}

/** Waits for something. */
export async function until(what, found, ms = 60_000) {
  const deadline = Date.now() + ms;
  for (;;) {
    const it = await found();
    if (it) return it;
    assert.ok(Date.now() < deadline, what);
    await new Promise((done) => setTimeout(done, 50));
  }
}

export const rejects = (promise, code) => assert.rejects(promise, (error) => error instanceof TwirpError && error.code === code);

/** Brings the film into a room. Returns the ingress and its participant. */
export async function film({ film: url, ingress, rooms }, room, identity = 'film') {
  const made = await ingress.createIngress(IngressInput.URL_INPUT, {
    url, name: 'film', roomName: room, participantIdentity: identity, participantName: 'A film',
  });
  assert.match(made.ingressId, /^IN_/);
  const participant = await until(`${identity} publishes`, async () => {
    const all = await rooms.listParticipants(room);
    return all.find((it) => it.identity === identity && it.tracks.length === 2);
  });
  return { made, participant };
}

/** What ffprobe says of a file, whose packets are all decoded. */
export async function probe(folder, file) {
  const path = join(folder, 'egress', file);
  // With the file's own time base: in one of whole frames, two may have the same time.
  const { stderr } = await run('ffmpeg', ['-v', 'error', '-i', path, '-fps_mode', 'passthrough', '-enc_time_base', '-1', '-f', 'null', '-']);
  const { stdout } = await run('ffprobe', ['-v', 'error', '-show_streams', '-show_format', '-of', 'json', path]);
  const { streams, format } = JSON.parse(stdout);
  return { errors: stderr, codecs: streams.map((it) => it.codec_name).sort(), duration: Number(format.duration), path };
}

export const egressInfo = async (egress, id) => (await egress.listEgress({ egressId: id }))[0];

/** Waits for the status of an egress. */
export const reaches = (egress, id, status) => until(`${id} reaches ${EgressStatus[status]}`, async () => {
  const it = await egressInfo(egress, id);
  assert.ok(it.status === status || it.status !== EgressStatus.EGRESS_FAILED, it.error);
  return it.status === status && it;
});

/** The bytes of the files that an egress writes: that of its name, and those that it is made of. */
async function written(folder, it) {
  const folderOf = join(folder, 'egress');
  const name = it.fileResults[0]?.filename.replace(/\.\w+$/, '');
  // The folder is made with the first file.
  const files = await readdir(folderOf, { recursive: true }).catch(() => []);
  const own = files.filter((file) => (name && file.startsWith(`${name}.`)) || file.startsWith(`work-${it.egressId}/`));
  const sizes = own.map(async (file) => (await stat(join(folderOf, file))).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

/** Lets an egress run until it has written so much, and ends it. Returns what it has made. */
export async function record({ egress, folder }, started, bytes) {
  assert.match(started.egressId, /^EG_/);
  const active = await reaches(egress, started.egressId, EgressStatus.EGRESS_ACTIVE);
  await until('it is written', async () => (await written(folder, active)) >= bytes);
  await egress.stopEgress(started.egressId);
  return reaches(egress, started.egressId, EgressStatus.EGRESS_COMPLETE);
}
