// Tokens that are wrong in each way, and requests that lack a grant.
import { joinRoom } from '../signal.mjs';
import { KEY, adminToken, joinToken, makeToken } from '../tokens.mjs';

const now = () => Math.floor(Date.now() / 1000);
const video = { roomJoin: true, room: 'tokens' };

/** @returns {[string, string][]} */
const wrong = () => [
  ['empty', ''],
  ['no token', 'x'],
  ['three dots', '...'],
  ['not json', 'YQ.YQ.YQ'],
  ['unknown key', makeToken({ iss: 'nobody', sub: 'a', video })],
  ['no key', makeToken({ iss: undefined, sub: 'a', video })],
  ['another secret', makeToken({ sub: 'a', video }, { secret: 'another secret of thirty-two bytes' })],
  ['expired', makeToken({ sub: 'a', video, exp: now() - 100 })],
  ['expired within the leeway', makeToken({ sub: 'a', video, exp: now() - 30 })],
  ['not yet', makeToken({ sub: 'a', video, nbf: now() + 100 })],
  ['not yet within the leeway', makeToken({ sub: 'a', video, nbf: now() + 30 })],
  ['no expiry', makeToken({ sub: 'a', video, exp: undefined })],
  ['expiry is a text', makeToken({ sub: 'a', video, exp: 'soon' })],
  ['algorithm none', makeToken({ sub: 'a', video }, { header: { alg: 'none' } })],
  ['algorithm HS512', makeToken({ sub: 'a', video }, { header: { alg: 'HS512' } })],
  ['name is a number', makeToken({ sub: 'a', name: 5, video })],
  ['claims are null', makeToken({ sub: 'a', name: null, metadata: null, video })],
  ['jti instead of sub', makeToken({ jti: 'a', video })],
  ['no video', makeToken({ sub: 'a' })],
  ['no join', makeToken({ sub: 'a', video: { room: 'tokens' } })],
  ['no room', makeToken({ sub: 'a', video: { roomJoin: true } })],
  ['no identity', makeToken({ video })],
  ['long identity', makeToken({ sub: 'a'.repeat(257), video })],
  ['long room', makeToken({ sub: 'a', video: { roomJoin: true, room: 'r'.repeat(257) } })],
];

export async function tokens(run) {
  for (const [name, token] of wrong()) {
    const query = `access_token=${encodeURIComponent(token)}`;
    await run.http(`validate: ${name}`, { method: 'GET', path: `/rtc/validate?${query}`, headers: { origin: 'https://page.test' }, keep: ['access-control-allow-origin'] });
    await run.http(`list rooms: ${name}`, {
      path: '/twirp/livekit.RoomService/ListRooms', token, headers: { 'content-type': 'application/json' }, body: '{}',
    });
  }
  for (const header of ['Basic x', 'bearer x', 'Bearer']) {
    await run.http(`header: ${header}`, { method: 'GET', path: '/rtc/validate', headers: { authorization: header } });
  }
  await run.http('no header', { method: 'GET', path: '/rtc/validate' });
  for (const [name, token] of [['expired', makeToken({ sub: 'a', video, exp: now() - 100 })], ['no identity', makeToken({ video })]]) {
    const refused = await joinRoom(run.url, { token }).then((client) => client.close(), ({ status, body }) => ({ status, body }));
    run.note(`join: ${name}`, refused);
  }
}

/** The rights of rooms, and the methods that need one. */
export async function grants(run) {
  const methods = ['CreateRoom', 'ListRooms', 'DeleteRoom', 'ListParticipants', 'GetParticipant', 'RemoveParticipant', 'MutePublishedTrack',
    'UpdateParticipant', 'UpdateSubscriptions', 'SendData', 'UpdateRoomMetadata', 'ForwardParticipant', 'MoveParticipant', 'PerformRpc'];
  const body = { room: 'grants', identity: 'nobody', destinationRoom: 'elsewhere', destinationIdentity: 'nobody', method: 'm' };
  const withAll = adminToken('grants', { destinationRoom: 'elsewhere' });
  for (const method of methods) {
    await run.twirp(`${method}: none`, `RoomService/${method}`, body, makeToken());
    await run.twirp(`${method}: join`, `RoomService/${method}`, body, joinToken('grants', KEY));
    await run.twirp(`${method}: another room`, `RoomService/${method}`, body, makeToken({ video: { roomAdmin: true, room: 'other' } }));
    if (method !== 'CreateRoom' && method !== 'ListRooms') {
      await run.twirp(`${method}: all`, `RoomService/${method}`, body, withAll);
    }
  }
  const same = makeToken({ video: { roomAdmin: true, room: 'grants', destinationRoom: 'grants' } });
  for (const method of ['ForwardParticipant', 'MoveParticipant']) {
    await run.twirp(`${method}: same room`, `RoomService/${method}`, { ...body, destinationRoom: 'grants' }, same);
  }
}
