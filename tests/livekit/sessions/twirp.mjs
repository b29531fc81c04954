// Paths, content types and bodies.
import { CreateRoomRequest } from '@livekit/protocol';
import { adminToken } from '../tokens.mjs';

const JSON_TYPE = { 'content-type': 'application/json' };
const PROTOBUF = { 'content-type': 'application/protobuf' };

export async function routes(run) {
  const token = adminToken('routes');
  for (const path of ['/twirp/livekit.RoomService/Nothing', '/twirp/livekit.RoomService/', '/twirp/livekit.Nothing/ListRooms', '//twirp/livekit.RoomService/ListRooms',
    '/twirp/livekit.RoomService/ListRooms/more', '/twirp']) {
    await run.http(path, { path, token, headers: JSON_TYPE, body: '{}' });
  }
  const path = '/twirp/livekit.RoomService/ListRooms?';
  for (const method of ['GET', 'PUT', 'DELETE']) await run.http(method, { method, path, token, headers: JSON_TYPE });
  for (const type of ['', 'text/plain', 'application/x-protobuf', 'APPLICATION/JSON; charset=utf-8']) {
    await run.http(`type ${type}`, { path, token, headers: type === '' ? {} : { 'content-type': type }, body: Buffer.from('{"names":["nothing"]}') });
  }
  const origin = { origin: 'https://page.test' };
  const keep = ['access-control-allow-origin', 'access-control-expose-headers', 'access-control-max-age', 'access-control-allow-methods', 'access-control-allow-headers'];
  await run.http('preflight', { method: 'OPTIONS', path, headers: { ...origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization,content-type' }, keep });
  await run.http('cross-origin', { path, token, headers: { ...origin, ...JSON_TYPE }, body: '{"names":["nothing"]}', keep });
  await run.http('home', { method: 'GET', path: '/' });
  await run.http('head', { method: 'HEAD', path: '/' });
  for (const path of ['/settings/regions', '/rtc', '/rtc/v1', '/nothing', '/agent']) await run.http(`get ${path}`, { method: 'GET', path, token });
  for (const method of ['Egress/ListEgress', 'Egress/StartEgress', 'Ingress/ListIngress', 'SIP/ListSIPInboundTrunk', 'SIP/CreateSIPParticipant', 'Egress/Nothing', 'AgentDispatchService/Nothing']) {
    await run.twirp(method, method, {}, adminToken('', { roomRecord: true, ingressAdmin: true }));
  }
}

export async function bodies(run) {
  const token = adminToken('bodies');
  const path = '/twirp/livekit.RoomService/CreateRoom';
  for (const body of ['', '{', '[]', 'null', '1', '{"name":1}', '{"empty_timeout":-1}', '{"empty_timeout":"x"}', '{"empty_timeout":1.5}', '{"agents":{}}', '{"name":"\\ud800"}']) {
    await run.http(`json ${body}`, { path, token, headers: JSON_TYPE, body });
  }
  for (const [name, body] of /** @type {[string, Buffer][]} */ ([['cut', Buffer.from([10, 9, 65])], ['utf-8', Buffer.from([10, 1, 255])], ['type', Buffer.from([9, 1])]])) {
    await run.http(`protobuf ${name}`, { path, token, headers: PROTOBUF, body });
  }
  const ok = { path: '/twirp/livekit.RoomService/ListRooms', token, headers: JSON_TYPE };
  for (const body of ['{} trailing', '{"names":null}', '{"unknown":{"a":[1]}}', ' {"names":["nothing"]}']) await run.http(`json ${body}`, { ...ok, body: body.replace('{}', '{"names":["nothing"]}') .replace('null', '["nothing"]') });
  const kilobytes = (count) => 'x'.repeat(count * 1024);
  await run.twirp('long name', 'RoomService/CreateRoom', { name: 'x'.repeat(257) }, token);
  await run.twirp('long metadata', 'RoomService/CreateRoom', { name: 'bodies', metadata: kilobytes(513) }, token);
  await run.twirp('long metadata of an agent', 'RoomService/CreateRoom', { name: 'bodies', agents: [{ metadata: kilobytes(513) }] }, token);
  await run.twirp('long attributes of an agent', 'RoomService/CreateRoom', { name: 'bodies', agents: [{ attributes: { a: kilobytes(65) } }] }, token);
  await run.twirp('deployment of an agent', 'RoomService/CreateRoom', { name: 'bodies', agents: [{ deployment: 'a_b' }] }, token);
  await run.twirp('long name of a participant', 'RoomService/UpdateParticipant', { room: 'bodies', identity: 'a', name: 'x'.repeat(257) }, token);
  await run.twirp('long attributes', 'RoomService/UpdateParticipant', { room: 'bodies', identity: 'a', attributes: { a: kilobytes(65) } }, token);
  await run.twirp('long metadata of a room', 'RoomService/UpdateRoomMetadata', { room: 'bodies', metadata: kilobytes(513) }, token);
  await run.twirp('nonce', 'RoomService/SendData', { room: 'bodies', data: 'AAAA', nonce: 'AAAA' }, token);
  await run.twirp('rpc to nobody', 'RoomService/PerformRpc', { room: 'bodies', method: 'm' }, token);
  const request = new CreateRoomRequest({ name: 'bodies', emptyTimeout: 5 }).toBinary();
  const answer = await fetch(run.url + path, { method: 'POST', headers: { ...PROTOBUF, authorization: `Bearer ${token}` }, body: request });
  run.note('protobuf', { status: answer.status, type: answer.headers.get('content-type') });
  await run.twirp('end', 'RoomService/DeleteRoom', { room: 'bodies' }, token);
}
