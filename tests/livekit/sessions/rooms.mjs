// Rooms and participants by the services.
import { adminToken, joinToken } from '../tokens.mjs';

export async function rooms(run) {
  const call = (step, method, request) => run.twirp(step, `RoomService/${method}`, request, adminToken('rooms'));
  await call('create', 'CreateRoom', { name: 'rooms', emptyTimeout: 60, departureTimeout: 7, maxParticipants: 3, metadata: 'first' });
  await call('create again', 'CreateRoom', { name: 'rooms', emptyTimeout: 50, metadata: 'second' });
  await call('create without a name', 'CreateRoom', {});
  await call('list by name', 'ListRooms', { names: ['rooms', 'nothing'] });
  await call('metadata', 'UpdateRoomMetadata', { room: 'rooms', metadata: 'third' });
  await call('no metadata', 'UpdateRoomMetadata', { room: 'rooms', metadata: '' });
  await call('list after metadata', 'ListRooms', { names: ['rooms'] });
  await call('participants', 'ListParticipants', { room: 'rooms' });
  await call('send data', 'SendData', { room: 'rooms', data: 'aGVsbG8=', kind: 'RELIABLE', topic: 't' });
  await call('delete', 'DeleteRoom', { room: 'rooms' });
  await call('delete again', 'DeleteRoom', { room: 'rooms' });
  await call('list after the end', 'ListRooms', { names: ['rooms'] });
}

export async function participants(run) {
  const call = (step, method, request) => run.twirp(step, `RoomService/${method}`, { room: 'people', ...request }, adminToken('people'));
  await run.twirp('create', 'RoomService/CreateRoom', { name: 'people' }, adminToken('people'));
  const alice = await run.join({ token: joinToken('people', 'alice', {}, { name: 'Alice', metadata: 'm', attributes: { a: 'b' } }) });
  await alice.until('join');
  const bob = await run.join({ token: joinToken('people', 'bob', { canPublish: false, hidden: false }) });
  await bob.until('join');
  await run.frames('alice joined', alice);
  await run.frames('bob joined', bob);
  await call('get', 'GetParticipant', { identity: 'alice' });
  await call('get nobody', 'GetParticipant', { identity: 'nobody' });
  await call('rename', 'UpdateParticipant', { identity: 'alice', name: 'Al', metadata: 'n', attributes: { a: '', c: 'd' } });
  await call('update nobody', 'UpdateParticipant', { identity: 'nobody', name: 'x' });
  await run.frames('alice is renamed', alice);
  await call('permission', 'UpdateParticipant', { identity: 'bob', permission: { canSubscribe: true, canPublish: true, canPublishSources: ['CAMERA'] } });
  await run.frames('bob may publish', bob);
  await call('mute nothing', 'MutePublishedTrack', { identity: 'alice', trackSid: 'TR_nothing', muted: true });
  await call('unmute nothing', 'MutePublishedTrack', { identity: 'alice', trackSid: 'TR_nothing', muted: false });
  await call('subscribe to nothing', 'UpdateSubscriptions', { identity: 'bob', trackSids: ['TR_nothing'], subscribe: true });
  await call('metadata', 'UpdateRoomMetadata', { metadata: 'new' });
  run.note('room changed', (await bob.until('roomUpdate', { where: ({ room }) => room.metadata === 'new' })).room.metadata);
  await run.frames('bob sees no more', bob);
  await call('rpc without data channel', 'PerformRpc', { destinationIdentity: 'bob', method: 'm', payload: 'x'.repeat(16_000) });
  await call('remove', 'RemoveParticipant', { identity: 'bob' });
  await run.frames('bob is removed', bob);
  await call('remove again', 'RemoveParticipant', { identity: 'bob' });
  await call('delete', 'DeleteRoom', {});
  await run.frames('room is deleted', alice);
  await call('subscriptions of nobody', 'UpdateSubscriptions', { identity: 'nobody', trackSids: [], subscribe: true });
  await call('rpc to nobody', 'PerformRpc', { destinationIdentity: 'nobody', method: 'm' });
}
