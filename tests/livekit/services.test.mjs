// Egress, ingress and SIP by LiveKit's server SDK for Node, unmodified, with ffmpeg and sipp as they are installed.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { access, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import {
  DirectFileOutput, EgressClient, EgressStatus, EncodedFileOutput, IngressClient, IngressInput,
  RoomServiceClient, SipClient, StreamOutput, StreamProtocol, TrackType, TwirpError, WebhookReceiver,
} from 'livekit-server-sdk';
import { IngressState_Status, ParticipantInfo_Kind } from '@livekit/protocol';
import { freeTcpPort, freeUdpPorts } from '../server/ports.mjs';
import { startLiveKit } from './server.mjs';
import { KEY, SECRET } from './tokens.mjs';

const run = promisify(execFile);
const skip = process.env.LIVEKIT_URL && 'another server';

let folder;
let media;
let server;
let hooks;
let rooms;
let egress;
let ingress;
let sip;
let sipPort;
const events = [];

/** The bytes of some seconds of a recorded tone, and of pictures. */
const [SOUND, FILM] = [15_000, 150_000];

/** Waits for something. */
async function until(what, found, ms = 30_000) {
  const deadline = Date.now() + ms;
  for (;;) {
    const it = await found();
    if (it) return it;
    assert.ok(Date.now() < deadline, what);
    await new Promise((done) => setTimeout(done, 50));
  }
}

const rejects = (promise, code) => assert.rejects(promise, (error) => error instanceof TwirpError && error.code === code);

before(async () => {
  if (skip) return;
  folder = await mkdtemp(join(tmpdir(), 'portunus-services-'));
  const film = join(folder, 'film.mp4');
  await run('ffmpeg', ['-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=size=320x240:rate=15', '-f', 'lavfi', '-i', 'sine=frequency=440',
    '-t', '120', '-c:v', 'libx264', '-preset', 'ultrafast', '-c:a', 'aac', '-movflags', '+faststart', film]);
  media = createServer((_, response) => createReadStream(film).pipe(response));
  await new Promise((done) => media.listen(0, '127.0.0.1', done));
  const receiver = new WebhookReceiver(KEY, SECRET);
  hooks = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    events.push(await receiver.receive(body, request.headers.authorization));
    response.end();
  });
  await new Promise((done) => hooks.listen(0, '127.0.0.1', done));
  sipPort = await freeUdpPorts(1);
  const rtmp = await freeTcpPort();
  server = await startLiveKit(`webhook = { urls = ["http://127.0.0.1:${hooks.address().port}/"], api_key = "${KEY}" }
[livekit.ingress]
rtmp_port = ${rtmp}
rtmp_ports = 1
rtmp_host = "127.0.0.1"
[recording]
dir = "${folder}"
[sip]
listen = ["udp:${sipPort}"]
local_ip = "127.0.0.1"`);
  rooms = new RoomServiceClient(server.url, KEY, SECRET);
  egress = new EgressClient(server.url, KEY, SECRET);
  ingress = new IngressClient(server.url, KEY, SECRET);
  sip = new SipClient(server.url, KEY, SECRET);
});

after(async () => {
  await server?.stop();
  hooks?.close();
  media?.close();
  media?.closeAllConnections();
  if (folder) await rm(folder, { recursive: true });
});

/** Brings the film into a room. Returns the ingress and its participant. */
async function film(room, identity = 'film') {
  const url = `http://127.0.0.1:${media.address().port}/film.mp4`;
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

const track = (participant, type) => participant.tracks.find((it) => it.type === type).sid;

/** What ffprobe says of a file, whose packets are all decoded. */
async function probe(file) {
  const path = join(folder, 'egress', file);
  const { stderr } = await run('ffmpeg', ['-v', 'error', '-i', path, '-f', 'null', '-']);
  const { stdout } = await run('ffprobe', ['-v', 'error', '-show_streams', '-show_format', '-of', 'json', path]);
  const { streams, format } = JSON.parse(stdout);
  return { errors: stderr, codecs: streams.map((it) => it.codec_name).sort(), duration: Number(format.duration), path };
}

const info = async (id) => (await egress.listEgress({ egressId: id }))[0];

/** Waits for the status of an egress. */
const reaches = (id, status, ms) => until(`${id} reaches ${EgressStatus[status]}`, async () => {
  const it = await info(id);
  assert.ok(it.status === status || it.status !== EgressStatus.EGRESS_FAILED, it.error);
  return it.status === status && it;
}, ms);

/** The bytes of the files that an egress writes: that of its name, and those that it is made of. */
async function written(it) {
  const folderOf = join(folder, 'egress');
  const name = it.fileResults[0]?.filename.replace(/\.\w+$/, '');
  const files = await readdir(folderOf, { recursive: true });
  const own = files.filter((file) => (name && file.startsWith(`${name}.`)) || file.startsWith(`work-${it.egressId}/`));
  const sizes = own.map(async (file) => (await stat(join(folderOf, file))).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

/** Lets an egress run until it has written so much, and ends it. Returns what it has made. */
async function record(started, bytes) {
  assert.match(started.egressId, /^EG_/);
  const active = await reaches(started.egressId, EgressStatus.EGRESS_ACTIVE);
  await until('it is written', async () => (await written(active)) >= bytes);
  await egress.stopEgress(started.egressId);
  return reaches(started.egressId, EgressStatus.EGRESS_COMPLETE, 60_000);
}

test('a URL is a participant, and its tracks are recorded', { skip }, async () => {
  const { made, participant } = await film('url');
  assert.equal(participant.kind, ParticipantInfo_Kind.INGRESS);
  assert.equal(participant.name, 'A film');
  const [listed] = await ingress.listIngress({ roomName: 'url' });
  assert.equal(listed.state.status, IngressState_Status.ENDPOINT_PUBLISHING);
  await until('its webhooks', () => {
    const names = events.filter((it) => it.participant?.identity === 'film' || it.ingressInfo?.ingressId === made.ingressId).map((it) => it.event);
    return ['ingress_started', 'participant_joined', 'track_published'].every((it) => names.includes(it));
  });

  const [audio, video] = [track(participant, TrackType.AUDIO), track(participant, TrackType.VIDEO)];
  const sound = await egress.startTrackEgress('url', new DirectFileOutput({ filepath: '{room_name}/{track_type}' }), audio);
  const both = await egress.startTrackCompositeEgress('url', new EncodedFileOutput({ filepath: 'both.mp4' }), { audioTrackId: audio, videoTrackId: video });
  const all = await egress.startParticipantEgress('url', 'film', { file: new EncodedFileOutput({ filepath: 'film.webm' }) });
  const ended = await Promise.all([record(sound, SOUND), record(both, FILM), record(all, FILM)]);
  assert.deepEqual(ended.map((it) => it.fileResults[0].filename), ['url/audio.ogg', 'both.mp4', 'film.webm']);
  // H.264 does not fit into WebM, so that it was encoded anew.
  for (const [n, codecs] of [['opus'], ['h264', 'opus'], ['opus', 'vp8']].entries()) {
    const result = ended[n].fileResults[0];
    const found = await probe(result.filename);
    assert.equal(found.errors, '');
    assert.deepEqual(found.codecs, codecs);
    assert.ok(found.duration > 1 && found.duration < 40, `${result.filename}: ${found.duration} s`);
    assert.equal(Number(result.size), (await stat(found.path)).size);
    assert.ok(Math.abs(Number(result.duration) / 1e9 - found.duration) < 1.5, `${result.duration}, ${found.duration}`);
  }
  await assert.rejects(access(join(folder, 'egress', `work-${all.egressId}`)));
  for (const event of ['egress_started', 'egress_updated', 'egress_ended']) {
    await until(event, () => events.some((it) => it.event === event && it.egressInfo.egressId === both.egressId));
  }
  await rejects(egress.stopEgress(both.egressId), 'failed_precondition');
  assert.equal((await egress.listEgress({ roomName: 'url', active: true })).length, 0);

  const gone = await ingress.deleteIngress(made.ingressId);
  assert.equal(gone.ingressId, made.ingressId);
  await until('it has left', async () => (await rooms.listParticipants('url')).length === 0);
  await until('its last webhooks', () => events.some((it) => it.event === 'participant_left' && it.participant.identity === 'film'));
});

test('an egress that cannot be says why', { skip }, async () => {
  await rooms.createRoom({ name: 'no' });
  const file = (filepath) => new EncodedFileOutput({ filepath });
  await rejects(egress.startTrackCompositeEgress('no', file('a.mp4'), { audioTrackId: 'TR_no' }), 'not_found');
  await rejects(egress.startParticipantEgress('nothing', 'al', { file: file('a.mp4') }), 'not_found');
  await rejects(egress.startParticipantEgress('no', 'al', { file: file('../a.mp4') }), 'invalid_argument');
  await rejects(egress.startParticipantEgress('no', 'al', { file: file('/etc/a.mp4') }), 'invalid_argument');
  await rejects(egress.startWebEgress('https://example.org', file('a.mp4')), 'unimplemented');
  await rejects(egress.stopEgress('EG_no'), 'not_found');
  await rejects(ingress.createIngress(IngressInput.URL_INPUT, { url: 'file:///etc/passwd', roomName: 'no', participantIdentity: 'al' }), 'invalid_argument');
  const bad = await ingress.createIngress(IngressInput.URL_INPUT, { url: 'http://127.0.0.1:1/', roomName: 'no', participantIdentity: 'al' });
  const failed = await until('it fails', async () => {
    const [it] = await ingress.listIngress({ ingressId: bad.ingressId });
    return it.state.status === IngressState_Status.ENDPOINT_ERROR && it;
  });
  assert.match(failed.state.error, /refused/);
  await ingress.deleteIngress(bad.ingressId);
});

test('a room is composed to a film', { skip }, async () => {
  const { made } = await film('compose', 'one');
  const other = await film('compose', 'two');
  const started = await egress.startRoomCompositeEgress('compose', new EncodedFileOutput({ filepath: 'room.mp4' }), {
    layout: 'grid', encodingOptions: 0,
  });
  const ended = await record(started, FILM);
  const found = await probe(ended.fileResults[0].filename);
  assert.deepEqual(found.codecs, ['aac', 'h264']);
  assert.ok(found.duration > 1, `${found.duration} s`);
  await ingress.deleteIngress(made.ingressId);
  await ingress.deleteIngress(other.made.ingressId);
});

test('a participant is streamed by RTMP, and RTMP is a participant', { skip }, async () => {
  const { made } = await film('from');
  const listening = await ingress.createIngress(IngressInput.RTMP_INPUT, { roomName: 'to', participantIdentity: 'relayed' });
  const stream = new StreamOutput({ protocol: StreamProtocol.RTMP, urls: [`${listening.url}/${listening.streamKey}`] });
  const started = await egress.startParticipantEgress('from', 'film', { stream });
  const there = await until('the stream is in the other room', async () => {
    const all = await rooms.listParticipants('to');
    return all.find((it) => it.identity === 'relayed' && it.tracks.length === 2);
  }, 60_000);
  assert.equal(there.kind, ParticipantInfo_Kind.INGRESS);
  const running = await info(started.egressId);
  assert.equal(running.status, EgressStatus.EGRESS_ACTIVE);
  // The stream key is a secret.
  assert.ok(!JSON.stringify(running, (_, it) => (typeof it === 'bigint' ? `${it}` : it)).includes(listening.streamKey));
  await egress.stopEgress(started.egressId);
  await reaches(started.egressId, EgressStatus.EGRESS_COMPLETE);
  await until('it is gone', async () => (await rooms.listParticipants('to')).length === 0);

  // Nobody listens: it is tried again, and it fails.
  const nowhere = new StreamOutput({ protocol: StreamProtocol.RTMP, urls: ['rtmp://127.0.0.1:1/live/abcdefghijkl'] });
  const lost = await egress.startParticipantEgress('from', 'film', { stream: nowhere });
  const failed = await until('it fails', async () => {
    const it = await info(lost.egressId);
    return it.status === EgressStatus.EGRESS_FAILED && it;
  }, 90_000);
  assert.match(failed.error, /ffmpeg/);
  assert.ok(!failed.error.includes('abcdefghijkl'), failed.error);
  await ingress.deleteIngress(listening.ingressId);
  await ingress.deleteIngress(made.ingressId);
});

/** Starts sipp. It ends with the test at the latest. */
function sipp(t, ...options) {
  const child = spawn('sipp', ['-i', '127.0.0.1', '-nostdin', '-trace_err', '-error_file', join(folder, `sipp-${Date.now()}.log`), ...options], { stdio: 'ignore', cwd: folder });
  t.after(() => child.kill('SIGKILL'));
  return child;
}

test('telephones call rooms by rules, and rooms call telephones', { skip }, async (t) => {
  const { made } = await film('phone');
  const trunk = await sip.createSipInboundTrunk('in', ['+4930'], { allowedAddresses: ['127.0.0.1'] });
  assert.match(trunk.sipTrunkId, /^ST_/);
  const rule = await sip.createSipDispatchRule({ type: 'direct', roomName: 'phone', pin: '' }, { trunkIds: [trunk.sipTrunkId], name: 'all', attributes: { from: 'rule' } });
  assert.match(rule.sipDispatchRuleId, /^SDR_/);
  assert.equal((await sip.listSipInboundTrunk()).length, 1);
  assert.equal((await sip.listSipDispatchRule()).length, 1);

  // It sends back what it hears: the film.
  const caller = sipp(t, '-sn', 'uac', '-s', '+4930', '-m', '1', '-d', '12000', '-rtp_echo', '-p', `${await freeUdpPorts(1)}`, `127.0.0.1:${sipPort}`);
  const there = await until('the caller is in the room', async () => {
    const all = await rooms.listParticipants('phone');
    return all.find((it) => it.kind === ParticipantInfo_Kind.SIP && it.tracks.length === 1);
  });
  assert.equal(there.attributes['sip.trunkID'], trunk.sipTrunkId);
  assert.equal(there.attributes['sip.ruleID'], rule.sipDispatchRuleId);
  assert.equal(there.attributes.from, 'rule');
  const sound = await egress.startTrackEgress('phone', new DirectFileOutput({ filepath: 'phone.ogg' }), there.tracks[0].sid);
  await record(sound, SOUND);
  const { stderr } = await run('ffmpeg', ['-i', join(folder, 'egress', 'phone.ogg'), '-af', 'volumedetect', '-f', 'null', '-']);
  const loudest = Number(/max_volume: (-?[\d.]+) dB/.exec(stderr)?.[1]);
  assert.ok(loudest > -40, stderr);
  assert.equal(await new Promise((done) => caller.on('exit', done)), 0);
  await until('it has left', async () => (await rooms.listParticipants('phone')).every((it) => it.kind !== ParticipantInfo_Kind.SIP));

  // Another number is not the trunk's.
  const stranger = sipp(t, '-sn', 'uac', '-s', '+4931', '-m', '1', '-p', `${await freeUdpPorts(1)}`, `127.0.0.1:${sipPort}`);
  assert.notEqual(await new Promise((done) => stranger.on('exit', done)), 0);

  const port = await freeUdpPorts(1);
  sipp(t, '-sn', 'uas', '-rtp_echo', '-p', `${port}`);
  const out = await sip.createSipOutboundTrunk('out', `127.0.0.1:${port}`, ['+4940']);
  const called = await sip.createSipParticipant(out.sipTrunkId, '+49301', 'phone', { participantIdentity: 'called', participantName: 'Telephone', waitUntilAnswered: true });
  assert.equal(called.participantIdentity, 'called');
  const answered = await rooms.getParticipant('phone', 'called');
  assert.equal(answered.kind, ParticipantInfo_Kind.SIP);
  assert.equal(answered.attributes['sip.callStatus'], 'active');
  assert.equal(answered.attributes['sip.phoneNumber'], '+49301');
  await rooms.removeParticipant('phone', 'called');
  await until('it has left', async () => (await rooms.listParticipants('phone')).length === 1);

  // Nobody is there.
  const nobody = await sip.createSipOutboundTrunk('nobody', `127.0.0.1:${await freeUdpPorts(1)}`, ['+4940']);
  await assert.rejects(sip.createSipParticipant(nobody.sipTrunkId, '+49302', 'phone', { waitUntilAnswered: true, ringingTimeout: 2 }), TwirpError);
  await until('it is not in the room', async () => (await rooms.listParticipants('phone')).length === 1);

  for (const it of [trunk, out, nobody]) await sip.deleteSipTrunk(it.sipTrunkId);
  await sip.deleteSipDispatchRule(rule.sipDispatchRuleId);
  assert.deepEqual(await sip.listSipOutboundTrunk(), []);
  await rejects(sip.deleteSipTrunk('ST_no'), 'not_found');
  await ingress.deleteIngress(made.ingressId);
});
