// Telephones in rooms by LiveKit's server SDK for Node, unmodified, with ffmpeg and sipp as they are installed.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { DirectFileOutput, TwirpError } from 'livekit-server-sdk';
import { ParticipantInfo_Kind } from '@livekit/protocol';
import { freeUdpPorts } from '../server/ports.mjs';
import { CALL, film, record, rejects, run, services, skip, until } from './services.mjs';

const all = services();

/** Starts sipp. It ends with the test at the latest. */
function sipp(t, ...options) {
  const child = spawn('sipp', ['-i', '127.0.0.1', '-nostdin', '-trace_err', '-error_file', join(all.folder, `sipp-${Date.now()}.log`), ...options], { stdio: 'ignore', cwd: all.folder });
  t.after(() => child.kill('SIGKILL'));
  return child;
}

test('telephones call rooms by rules, and rooms call telephones', { skip }, async (t) => {
  const { rooms, egress, ingress, sip, sipPort } = all;
  const { made } = await film(all, 'phone');
  const trunk = await sip.createSipInboundTrunk('in', ['+4930'], { allowedAddresses: ['127.0.0.1'] });
  assert.match(trunk.sipTrunkId, /^ST_/);
  const rule = await sip.createSipDispatchRule({ type: 'direct', roomName: 'phone', pin: '' }, { trunkIds: [trunk.sipTrunkId], name: 'all', attributes: { from: 'rule' } });
  assert.match(rule.sipDispatchRuleId, /^SDR_/);
  assert.equal((await sip.listSipInboundTrunk()).length, 1);
  assert.equal((await sip.listSipDispatchRule()).length, 1);

  // It sends back what it hears: the film.
  const caller = sipp(t, '-sn', 'uac', '-s', '+4930', '-m', '1', '-d', '12000', '-rtp_echo', '-p', `${await freeUdpPorts(1)}`, `127.0.0.1:${sipPort}`);
  const there = await until('the caller is in the room', async () => {
    const people = await rooms.listParticipants('phone');
    return people.find((it) => it.kind === ParticipantInfo_Kind.SIP && it.tracks.length === 1);
  });
  assert.equal(there.attributes['sip.trunkID'], trunk.sipTrunkId);
  assert.equal(there.attributes['sip.ruleID'], rule.sipDispatchRuleId);
  assert.equal(there.attributes.from, 'rule');
  const sound = await egress.startTrackEgress('phone', new DirectFileOutput({ filepath: 'phone.ogg' }), there.tracks[0].sid);
  await record(all, sound, CALL);
  const { stderr } = await run('ffmpeg', ['-i', join(all.folder, 'egress', 'phone.ogg'), '-af', 'volumedetect', '-f', 'null', '-']);
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
