// RTMP out of a room and into another, by LiveKit's server SDK for Node, unmodified, with ffmpeg as it is installed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EgressStatus, IngressInput, StreamOutput, StreamProtocol } from 'livekit-server-sdk';
import { ParticipantInfo_Kind } from '@livekit/protocol';
import { egressInfo, film, reaches, services, skip, SMALL, until } from './services.mjs';

const all = services();

test('a participant is streamed by RTMP, and RTMP is a participant', { skip }, async () => {
  const { rooms, egress, ingress } = all;
  const { made } = await film(all, 'from');
  const listening = await ingress.createIngress(IngressInput.RTMP_INPUT, { roomName: 'to', participantIdentity: 'relayed' });
  const stream = new StreamOutput({ protocol: StreamProtocol.RTMP, urls: [`${listening.url}/${listening.streamKey}`] });
  const started = await egress.startParticipantEgress('from', 'film', { stream }, { encodingOptions: SMALL });
  const there = await until('the stream is in the other room', async () => {
    const people = await rooms.listParticipants('to');
    return people.find((it) => it.identity === 'relayed' && it.tracks.length === 2);
  }, 60_000);
  assert.equal(there.kind, ParticipantInfo_Kind.INGRESS);
  const running = await egressInfo(egress, started.egressId);
  assert.equal(running.status, EgressStatus.EGRESS_ACTIVE);
  // The stream key is a secret.
  assert.ok(!JSON.stringify(running, (_, it) => (typeof it === 'bigint' ? `${it}` : it)).includes(listening.streamKey));
  await egress.stopEgress(started.egressId);
  await reaches(egress, started.egressId, EgressStatus.EGRESS_COMPLETE);
  await until('it is gone', async () => (await rooms.listParticipants('to')).length === 0);

  // Nobody listens: it is tried again, and it fails.
  const nowhere = new StreamOutput({ protocol: StreamProtocol.RTMP, urls: ['rtmp://127.0.0.1:1/live/abcdefghijkl'] });
  const lost = await egress.startParticipantEgress('from', 'film', { stream: nowhere });
  const failed = await until('it fails', async () => {
    const it = await egressInfo(egress, lost.egressId);
    return it.status === EgressStatus.EGRESS_FAILED && it;
  }, 90_000);
  assert.match(failed.error, /ffmpeg/);
  assert.ok(!failed.error.includes('abcdefghijkl'), failed.error);
  await ingress.deleteIngress(listening.ingressId);
  await ingress.deleteIngress(made.ingressId);
});
