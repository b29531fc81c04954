// Egress and ingress by LiveKit's server SDK for Node, unmodified, with ffmpeg as it is installed.
import assert from 'node:assert/strict';
import { access, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { DirectFileOutput, EncodedFileOutput, IngressInput, TrackType } from 'livekit-server-sdk';
import { IngressState_Status, ParticipantInfo_Kind } from '@livekit/protocol';
import { FILM, film, probe, record, rejects, services, skip, SMALL, SOUND, until } from './services.mjs';

const all = services();

const track = (participant, type) => participant.tracks.find((it) => it.type === type).sid;

test('a URL is a participant, and its tracks are recorded', { skip }, async () => {
  const { rooms, egress, ingress } = all;
  const { made, participant } = await film(all, 'url');
  assert.equal(participant.kind, ParticipantInfo_Kind.INGRESS);
  assert.equal(participant.name, 'A film');
  const [listed] = await ingress.listIngress({ roomName: 'url' });
  assert.equal(listed.state.status, IngressState_Status.ENDPOINT_PUBLISHING);
  await until('its webhooks', () => {
    const names = all.events.filter((it) => it.participant?.identity === 'film' || it.ingressInfo?.ingressId === made.ingressId).map((it) => it.event);
    return ['ingress_started', 'participant_joined', 'track_published'].every((it) => names.includes(it));
  });

  const [audio, video] = [track(participant, TrackType.AUDIO), track(participant, TrackType.VIDEO)];
  const sound = await egress.startTrackEgress('url', new DirectFileOutput({ filepath: '{room_name}/{track_type}' }), audio);
  const both = await egress.startTrackCompositeEgress('url', new EncodedFileOutput({ filepath: 'both.mp4' }), { audioTrackId: audio, videoTrackId: video });
  const whole = await egress.startParticipantEgress('url', 'film', { file: new EncodedFileOutput({ filepath: 'film.webm' }) });
  const ended = await Promise.all([record(all, sound, SOUND), record(all, both, FILM), record(all, whole, FILM)]);
  assert.deepEqual(ended.map((it) => it.fileResults[0].filename), ['url/audio.ogg', 'both.mp4', 'film.webm']);
  // H.264 does not fit into WebM, so that it was encoded anew.
  for (const [n, codecs] of [['opus'], ['h264', 'opus'], ['opus', 'vp8']].entries()) {
    const result = ended[n].fileResults[0];
    const found = await probe(all.folder, result.filename);
    assert.equal(found.errors, '');
    assert.deepEqual(found.codecs, codecs);
    assert.ok(found.duration > 1 && found.duration < 40, `${result.filename}: ${found.duration} s`);
    assert.equal(Number(result.size), (await stat(found.path)).size);
    assert.ok(Math.abs(Number(result.duration) / 1e9 - found.duration) < 1.5, `${result.duration}, ${found.duration}`);
  }
  await assert.rejects(access(join(all.folder, 'egress', `work-${whole.egressId}`)));
  for (const event of ['egress_started', 'egress_updated', 'egress_ended']) {
    await until(event, () => all.events.some((it) => it.event === event && it.egressInfo.egressId === both.egressId));
  }
  await rejects(egress.stopEgress(both.egressId), 'failed_precondition');
  assert.equal((await egress.listEgress({ roomName: 'url', active: true })).length, 0);

  const gone = await ingress.deleteIngress(made.ingressId);
  assert.equal(gone.ingressId, made.ingressId);
  await until('it has left', async () => (await rooms.listParticipants('url')).length === 0);
  await until('its last webhooks', () => all.events.some((it) => it.event === 'participant_left' && it.participant.identity === 'film'));
});

test('an egress that cannot be says why', { skip }, async () => {
  const { rooms, egress, ingress } = all;
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
  const { rooms, egress, ingress } = all;
  const { made } = await film(all, 'compose', 'one');
  const other = await film(all, 'compose', 'two');
  const started = await egress.startRoomCompositeEgress('compose', new EncodedFileOutput({ filepath: 'room.mp4' }), {
    layout: 'grid', encodingOptions: SMALL,
  });
  // Both films are written.
  const ended = await record(all, started, 2 * FILM);
  const found = await probe(all.folder, ended.fileResults[0].filename);
  assert.deepEqual(found.codecs, ['aac', 'h264']);
  assert.ok(found.duration > 1, `${found.duration} s`);
  await ingress.deleteIngress(made.ingressId);
  await ingress.deleteIngress(other.made.ingressId);
});
