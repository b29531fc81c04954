// Joining and publishing, as far as it is seen without media.
import { TrackSource, TrackType, AddTrackRequest } from '@livekit/protocol';
import { adminToken, joinToken, makeToken } from '../tokens.mjs';

export async function joins(run) {
  const first = await run.join({ token: joinToken('joins', 'alice', {}, { name: 'Alice' }) });
  await first.until('join');
  await run.frames('alice', first);
  const again = await run.join({ token: joinToken('joins', 'alice') });
  await again.until('join');
  await run.frames('alice again', again);
  await run.frames('the first alice', first);
  again.send({ case: 'ping', value: 5n });
  again.send({ case: 'pingReq', value: { timestamp: 5n, rtt: 1n } });
  await again.until('pongResp');
  run.note('pong', again.frames.filter((it) => it.kind.startsWith('pong')).map((it) => Object.keys(it.value)));
  again.send({ case: 'updateMetadata', value: { name: 'x', requestId: 7 } });
  await run.frames('no right to a name', again);
  const kind = await run.join({ token: makeToken({ sub: 'bot', kind: 'agent', video: { roomJoin: true, room: 'joins', hidden: true, canUpdateOwnMetadata: true } }) });
  await kind.until('join');
  await run.frames('an agent', kind);
  kind.send({ case: 'updateMetadata', value: { name: 'Bot', metadata: 'm', attributes: { a: 'b' }, requestId: 8 } });
  await run.frames('a new name', kind);
  await run.frames('alice sees nobody', again);
  again.send({ case: 'leave', value: { reason: 1 } });
  await run.frames('alice leaves', again);
  const back = await run.join({ token: joinToken('joins', 'alice'), query: { reconnect: '1', sid: 'PA_unknown00000' } });
  await run.frames('a resume of nobody', back);
  await run.twirp('delete', 'RoomService/DeleteRoom', { room: 'joins' }, adminToken('joins'));
}

export async function tracks(run) {
  const alice = await run.join({ token: joinToken('tracks', 'alice') });
  await alice.until('join');
  await run.frames('join', alice);
  const add = (request) => alice.send({ case: 'addTrack', value: new AddTrackRequest(request) });
  add({ cid: 'mic', name: 'voice', type: TrackType.AUDIO, source: TrackSource.MICROPHONE });
  await run.frames('microphone', alice);
  add({ cid: 'cam', type: TrackType.VIDEO, source: TrackSource.CAMERA, width: 640, height: 360, layers: [{ quality: 0, width: 320, height: 180, bitrate: 150_000 }, { quality: 1, width: 640, height: 360, bitrate: 500_000 }], simulcastCodecs: [{ codec: 'vp8', cid: 'cam' }] });
  await run.frames('camera', alice);
  add({ cid: 'cam', type: TrackType.VIDEO, source: TrackSource.CAMERA });
  await run.frames('the same again', alice);
  add({ cid: 'other', type: 2 });
  await run.frames('neither sound nor picture', alice);
  alice.send({ case: 'mute', value: { sid: 'TR_nothing', muted: true } });
  alice.send({ case: 'subscription', value: { trackSids: ['TR_nothing'], subscribe: true } });
  alice.send({ case: 'trackSetting', value: { trackSids: ['TR_nothing'], disabled: true } });
  await run.frames('unknown tracks', alice);
  const mute = await run.join({ token: joinToken('tracks', 'mute', { canPublish: false }) });
  await mute.until('join');
  await run.frames('no publisher joins', mute);
  mute.send({ case: 'addTrack', value: new AddTrackRequest({ cid: 'mic', type: TrackType.AUDIO }) });
  await run.frames('no right to publish', mute);
  const limited = await run.join({ token: joinToken('tracks', 'limited', { canPublishSources: ['camera'] }) });
  await limited.until('join');
  await run.frames('a publisher of cameras joins', limited);
  limited.send({ case: 'addTrack', value: new AddTrackRequest({ cid: 'mic', type: TrackType.AUDIO, source: TrackSource.MICROPHONE }) });
  await run.frames('no right to a microphone', limited);
  await run.twirp('list', 'RoomService/ListParticipants', { room: 'tracks' }, adminToken('tracks'));
  await run.twirp('delete', 'RoomService/DeleteRoom', { room: 'tracks' }, adminToken('tracks'));
}
