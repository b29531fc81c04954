// LiveKit's server SDK for Node, unmodified: rooms, participants, data, webhooks.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { AccessToken, DataPacket_Kind, RoomServiceClient, TwirpError, WebhookReceiver } from 'livekit-server-sdk';
import { joinRoom } from './signal.mjs';
import { startLiveKit } from './server.mjs';
import { KEY, SECRET, joinToken } from './tokens.mjs';

let server;
let rooms;
const received = [];
let webhooks;

before(async () => {
  const receiver = new WebhookReceiver(KEY, SECRET);
  webhooks = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    // Throws if the signature or the digest is wrong.
    received.push(await receiver.receive(body, request.headers.authorization));
    response.end();
  });
  await new Promise((done) => webhooks.listen(0, '127.0.0.1', done));
  const hook = `http://127.0.0.1:${webhooks.address().port}/hook`;
  server = await startLiveKit(`webhook = { urls = ["${hook}"], api_key = "${KEY}" }`);
  rooms = new RoomServiceClient(server.url, KEY, SECRET);
});

after(async () => {
  await server?.stop();
  webhooks?.close();
});

const rejects = (promise, code) => assert.rejects(promise, (error) => error instanceof TwirpError && error.code === code);

/** Waits for something. */
async function until(what, found) {
  const deadline = Date.now() + 5_000;
  for (;;) {
    const it = found();
    if (it) return it;
    assert.ok(Date.now() < deadline, what);
    await new Promise((done) => setTimeout(done, 20));
  }
}

test('rooms are made, listed, changed and deleted', async () => {
  const made = await rooms.createRoom({ name: 'sdk', emptyTimeout: 60, departureTimeout: 5, maxParticipants: 4, metadata: 'one' });
  assert.match(made.sid, /^RM_/);
  assert.equal(made.emptyTimeout, 60);
  assert.equal(made.departureTimeout, 5);
  assert.equal(made.maxParticipants, 4);
  assert.equal((await rooms.createRoom({ name: 'sdk' })).sid, made.sid);
  assert.deepEqual((await rooms.listRooms(['sdk', 'nothing'])).map((it) => it.name), ['sdk']);
  assert.ok((await rooms.listRooms()).some((it) => it.sid === made.sid));
  assert.equal((await rooms.updateRoomMetadata('sdk', 'two')).metadata, 'two');
  assert.deepEqual(await rooms.listParticipants('sdk'), []);
  await rooms.deleteRoom('sdk');
  assert.deepEqual(await rooms.listRooms(['sdk']), []);
  await rejects(rooms.deleteRoom('sdk'), 'not_found');
});

test('participants are listed, changed and removed', async () => {
  const token = new AccessToken(KEY, SECRET, { identity: 'al', name: 'Al', metadata: 'm', attributes: { a: 'b' } });
  token.addGrant({ roomJoin: true, room: 'people' });
  const al = await joinRoom(server.url, { token: await token.toJwt() });
  const { participant } = await al.until('join');
  assert.deepEqual((await rooms.listParticipants('people')).map((it) => it.identity), ['al']);
  const got = await rooms.getParticipant('people', 'al');
  assert.equal(got.sid, participant.sid);
  assert.deepEqual([got.name, got.metadata, got.attributes], ['Al', 'm', { a: 'b' }]);
  const changed = await rooms.updateParticipant('people', 'al', {
    name: 'Albert', attributes: { a: '', c: 'd' }, permission: { canSubscribe: true, canPublish: false, canPublishData: false },
  });
  assert.equal(changed.name, 'Albert');
  assert.equal(changed.metadata, 'm');
  assert.deepEqual(changed.attributes, { c: 'd' });
  assert.equal(changed.permission?.canPublish, false);
  const isNew = (update) => update.participants.some((it) => it.name === 'Albert' && !it.permission?.canPublish);
  await al.until('update', { where: isNew });
  await rooms.updateSubscriptions('people', 'al', ['TR_nothing'], true);
  await rooms.sendData('people', new TextEncoder().encode('hello'), DataPacket_Kind.RELIABLE, { topic: 't', destinationIdentities: ['al'] });
  await rejects(rooms.getParticipant('people', 'nobody'), 'not_found');
  await rejects(rooms.mutePublishedTrack('people', 'al', 'TR_nothing', false), 'failed_precondition');
  await rooms.removeParticipant('people', 'al');
  assert.equal((await al.until('leave')).reason, 'PARTICIPANT_REMOVED');
  await until('the connection is closed', () => al.closed !== null);
  await rejects(rooms.removeParticipant('people', 'al'), 'not_found');
  await rooms.deleteRoom('people');
});

test('a room ends for those who are in it', async () => {
  const al = await joinRoom(server.url, { token: joinToken('short', 'al') });
  await al.until('join');
  await rooms.deleteRoom('short');
  assert.equal((await al.until('leave')).reason, 'ROOM_DELETED');
  await until('the connection is closed', () => al.closed !== null);
});

test('who lacks a grant or has a wrong secret is refused', async () => {
  await assert.rejects(new RoomServiceClient(server.url, KEY, 'another secret of thirty-two bytes').listRooms(), (error) => error.status === 401);
  await assert.rejects(new RoomServiceClient(server.url, 'nobody', SECRET).listRooms(), (error) => error.status === 401);
});

test('methods that are not there say so', { skip: process.env.LIVEKIT_URL && 'another server' }, async () => {
  await rejects(rooms.moveParticipant('nothing', 'al', 'other'), 'not_found');
});

test('webhooks are signed as the SDK expects', { skip: process.env.LIVEKIT_URL && 'another server' }, async () => {
  await rooms.createRoom({ name: 'hooks' });
  const al = await joinRoom(server.url, { token: joinToken('hooks', 'al') });
  await al.until('join');
  await rooms.removeParticipant('hooks', 'al');
  await rooms.deleteRoom('hooks');
  const events = () => received.filter((it) => it.room?.name === 'hooks');
  await until('the room is finished', () => events().some((it) => it.event === 'room_finished'));
  // Its media never flowed.
  await until('al has left', () => events().some((it) => it.event === 'participant_connection_aborted'));
  assert.equal(events()[0].event, 'room_started');
  assert.ok(events().every((it) => it.id && it.createdAt > 0n));
});
