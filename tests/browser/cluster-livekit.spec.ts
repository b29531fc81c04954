// Clients of LiveKit at two nodes of a cluster are in one room: identities, data, data tracks, calls, permissions and services.
import type { BrowserContext, Page } from '@playwright/test';
import { isReference } from '../server/index.mjs';
import { hasNats, startCluster, type Cluster } from './cluster';
import { expect, test } from './fixtures';
import { connect, inRoom, openSdk, seen, token, type LiveKitServer } from './livekit';

const ROOM = 'hall';

test.skip(isReference || !hasNats, 'it needs servers of ours, and nats-server (scripts/setup cluster)');

let cluster: Cluster;

test.beforeEach(async () => {
  cluster = await startCluster(['a', 'b'], '');
});

test.afterEach(async () => {
  await cluster?.stop();
});

async function enter(context: BrowserContext, node: LiveKitServer, identity: string, grants: object = {}): Promise<Page> {
  const page = await context.newPage();
  await openSdk(page, node);
  await connect(page, node, token(identity, ROOM, grants));
  await inRoom(
    page,
    `(window.got = [], room.on('dataReceived', (bytes, from, kind, topic) =>
      got.push([new TextDecoder().decode(bytes), from?.identity ?? 'service', kind, topic ?? ''].join(' '))),
      room.registerTextStreamHandler('chat', async (reader, from) => got.push('text ' + from.identity + ' ' + (await reader.readAll()).length)),
      room.registerRpcMethod('greet', async (call) => 'hello ' + call.callerIdentity + ', ' + call.payload), null)`,
  );
  return page;
}

/** The identities of the others, as a client sees them. */
const others = (page: Page) => inRoom<string[]>(page, '[...room.remoteParticipants.keys()].toSorted()');

/** Calls a method of the room service at a node. */
async function service(node: LiveKitServer, method: string, request: object): Promise<any> {
  const grants = { roomAdmin: true, roomCreate: true, roomList: true };
  const response = await fetch(`${node.livekit.replace('ws', 'http')}/twirp/livekit.RoomService/${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token('admin', ROOM, grants)}` },
    body: JSON.stringify({ room: ROOM, ...request }),
  });
  expect(response.status, await response.clone().text()).toBe(200);
  return response.json();
}

test('data, texts and calls reach the clients of the other node', async ({ context }) => {
  const [a, b] = cluster.nodes;
  const al = await enter(context, a, 'al');
  const bo = await enter(context, b, 'bo');
  const cy = await enter(context, b, 'cy');
  await expect.poll(() => others(al)).toEqual(['bo', 'cy']);
  await expect.poll(() => others(cy)).toEqual(['al', 'bo']);
  const sid = (page: Page, identity: string) => inRoom<string>(page, `room.getParticipantByIdentity('${identity}').sid`);
  expect(await sid(bo, 'al')).toBe(await sid(al, 'al'));
  await inRoom(al, `room.localParticipant.publishData(new TextEncoder().encode('to all'), { reliable: true, topic: 't' })`);
  await inRoom(al, `room.localParticipant.publishData(new TextEncoder().encode('to bo'), { reliable: true, destinationIdentities: ['bo'] })`);
  await inRoom(al, `room.localParticipant.publishData(new TextEncoder().encode('lossy'), { reliable: false })`);
  await inRoom(al, `room.localParticipant.sendText('x'.repeat(100_000), { topic: 'chat' }).then(() => null)`);
  await expect.poll(() => inRoom<string[]>(bo, 'got.toSorted()')).toEqual(['lossy al 1 ', 'text al 100000', 'to all al 0 t', 'to bo al 0 ']);
  await expect.poll(() => inRoom<string[]>(cy, 'got.toSorted()')).toEqual(['lossy al 1 ', 'text al 100000', 'to all al 0 t']);
  expect(await inRoom(al, `room.localParticipant.performRpc({ destinationIdentity: 'bo', method: 'greet', payload: 'you' })`)).toBe('hello al, you');
  expect(await inRoom(bo, `room.localParticipant.performRpc({ destinationIdentity: 'al', method: 'greet', payload: 'back' })`)).toBe('hello bo, back');
});

test('tracks, attributes and permissions are the same at both nodes', async ({ context }) => {
  const [a, b] = cluster.nodes;
  const al = await enter(context, a, 'al', { canUpdateOwnMetadata: true });
  const bo = await enter(context, b, 'bo');
  const cy = await enter(context, b, 'cy');
  await inRoom(al, 'room.localParticipant.enableCameraAndMicrophone()');
  const both = ['al camera subscribed on', 'al microphone subscribed on'];
  for (const page of [bo, cy]) await expect.poll(() => seen(page)).toEqual(both);
  await expect.poll(() => inRoom(bo, `document.querySelector('video')?.currentTime > 0.5`)).toBe(true);
  await inRoom(al, `room.localParticipant.setAttributes({ mood: 'good' })`);
  await inRoom(al, `room.localParticipant.setName('Alice')`);
  const known = `room.getParticipantByIdentity('al').name + ' ' + room.getParticipantByIdentity('al').attributes.mood`;
  await expect.poll(() => inRoom(bo, known)).toBe('Alice good');
  await inRoom(al, `room.localParticipant.setTrackSubscriptionPermissions(false, [{ participantIdentity: 'bo', allowAll: true }])`);
  await expect.poll(() => seen(cy)).toEqual(['al camera known on', 'al microphone known on']);
  expect(await seen(bo)).toEqual(both);
  await inRoom(al, 'room.localParticipant.setTrackSubscriptionPermissions(true)');
  await expect.poll(() => seen(cy)).toEqual(both);
});

test('the room service of a node reaches participants of the other one', async ({ context }) => {
  const [a, b] = cluster.nodes;
  const al = await enter(context, a, 'al');
  const bo = await enter(context, b, 'bo');
  await expect.poll(() => others(bo)).toEqual(['al']);
  await inRoom(al, 'room.localParticipant.setMicrophoneEnabled(true).then(() => null)');
  await expect.poll(() => seen(bo)).toEqual(['al microphone subscribed on']);
  const data = Buffer.from('hello').toString('base64');
  await service(b, 'SendData', { data, kind: 'RELIABLE', destinationIdentities: ['al'], topic: 's' });
  await expect.poll(() => inRoom<string[]>(al, 'got')).toEqual(['hello service 0 s']);
  expect(await inRoom<string[]>(bo, 'got')).toEqual([]);
  await service(b, 'UpdateParticipant', { identity: 'al', name: 'Alice', metadata: 'm', attributes: { mood: 'good' } });
  const known = (who: string) => `[${who}.name, ${who}.metadata, ${who}.attributes.mood].join(' ')`;
  await expect.poll(() => inRoom(al, known('room.localParticipant'))).toBe('Alice m good');
  await expect.poll(() => inRoom(bo, known(`room.getParticipantByIdentity('al')`))).toBe('Alice m good');
  const track = await inRoom<string>(al, `[...room.localParticipant.trackPublications.values()][0].trackSid`);
  await service(b, 'MutePublishedTrack', { identity: 'al', trackSid: track, muted: true });
  await expect.poll(() => inRoom(al, 'room.localParticipant.isMicrophoneEnabled')).toBe(false);
  await expect.poll(() => seen(bo)).toEqual(['al microphone subscribed muted']);
  await service(a, 'UpdateRoomMetadata', { metadata: 'over nodes' });
  for (const page of [al, bo]) await expect.poll(() => inRoom(page, 'room.metadata')).toBe('over nodes');
  const all = await service(b, 'ListParticipants', {});
  expect(all.participants.map((it: { identity: string }) => it.identity).toSorted()).toEqual(['al', 'bo']);
  await service(b, 'RemoveParticipant', { identity: 'al' });
  await expect.poll(() => inRoom(al, 'room.state')).toBe('disconnected');
  await expect.poll(() => others(bo)).toEqual([]);
});

test('data tracks cross to clients of the other node', async ({ context }) => {
  const [a, b] = cluster.nodes;
  const al = await enter(context, a, 'al');
  const bo = await enter(context, b, 'bo');
  await expect.poll(() => others(bo)).toEqual(['al']);
  await inRoom(
    bo,
    `(window.frames = [], window.gone = [], room.on('dataTrackUnpublished', (sid) => gone.push(sid)), room.on('dataTrackPublished', async (track) => {
      for await (const frame of track.subscribe()) frames.push(track.publisherIdentity + ' ' + track.info.name + ' ' + new TextDecoder().decode(frame.payload));
    }), null)`,
  );
  await inRoom(al, `room.localParticipant.publishDataTrack({ name: 'place' }).then((track) => { window.place = track; return null; })`);
  await expect
    .poll(async () => {
      await inRoom(al, `place.tryPush({ payload: new TextEncoder().encode('x=1') }).then(() => null, () => null)`);
      return inRoom<string[]>(bo, 'frames.slice(0, 1)');
    })
    .toEqual(['al place x=1']);
  // One who joins later gets it, too.
  const cy = await enter(context, b, 'cy');
  await inRoom(
    cy,
    `(window.frames = [], window.follow = async (track) => {
      for await (const frame of track.subscribe()) frames.push(new TextDecoder().decode(frame.payload));
    }, room.on('dataTrackPublished', follow), room.remoteParticipants.forEach((it) => it.dataTracks.forEach((track) => void follow(track))), null)`,
  );
  await expect
    .poll(async () => {
      await inRoom(al, `place.tryPush({ payload: new TextEncoder().encode('x=2') }).then(() => null, () => null)`);
      return inRoom<boolean>(cy, `frames.includes('x=2')`);
    })
    .toBe(true);
  await inRoom(al, 'place.unpublish().then(() => null)');
  await expect.poll(() => inRoom<number>(bo, 'gone.length')).toBe(1);
});

test('the services of a node call, subscribe and move participants of the other one', async ({ context }) => {
  const [a, b] = cluster.nodes;
  const al = await enter(context, a, 'al');
  const bo = await enter(context, b, 'bo');
  await expect.poll(() => others(bo)).toEqual(['al']);
  const called = await service(b, 'PerformRpc', { destinationIdentity: 'al', method: 'greet', payload: 'you' });
  expect(called.payload).toMatch(/^hello .*, you$/);
  await inRoom(bo, 'room.localParticipant.setMicrophoneEnabled(true).then(() => null)');
  await expect.poll(() => seen(al)).toEqual(['bo microphone subscribed on']);
  const track = await inRoom<string>(bo, `[...room.localParticipant.trackPublications.values()][0].trackSid`);
  await service(b, 'UpdateSubscriptions', { identity: 'al', trackSids: [track], subscribe: false });
  await expect.poll(() => seen(al)).toEqual(['bo microphone known on']);
  await service(b, 'UpdateSubscriptions', { identity: 'al', trackSids: [track], subscribe: true });
  await expect.poll(() => seen(al)).toEqual(['bo microphone subscribed on']);
  // A second client with an identity ends the first, wherever that is.
  const again = await enter(context, b, 'al');
  await expect.poll(() => inRoom(al, 'room.state')).toBe('disconnected');
  await expect.poll(() => seen(again)).toEqual(['bo microphone subscribed on']);
  await expect.poll(() => others(bo)).toEqual(['al']);
});
