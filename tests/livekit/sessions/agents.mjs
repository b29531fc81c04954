// Dispatches of agents, and a worker that takes a job.
import { decodeJwt } from './claims.mjs';
import { adminToken, makeToken } from '../tokens.mjs';
import { connectWorker } from '../worker.mjs';

export async function dispatches(run) {
  const call = (step, method, request) => run.twirp(step, `AgentDispatchService/${method}`, { room: 'dispatches', ...request }, adminToken('dispatches'));
  await call('list without a room', 'ListDispatch', {});
  const made = await call('create', 'CreateDispatch', { agentName: 'nobody', metadata: 'm' });
  await run.twirp('create without the grant', 'AgentDispatchService/CreateDispatch', { room: 'dispatches' }, adminToken('other'));
  await call('create with a deployment', 'CreateDispatch', { agentName: 'nobody', deployment: 'a b' });
  await call('list by id', 'ListDispatch', { dispatchId: made.id });
  await call('delete', 'DeleteDispatch', { dispatchId: made.id });
  await call('list by id after the end', 'ListDispatch', { dispatchId: made.id });
  await run.twirp('delete the room', 'RoomService/DeleteRoom', { room: 'dispatches' }, adminToken('dispatches'));
}

export async function workers(run) {
  const refused = await connectWorker(run.url, makeToken({ video: { roomAdmin: true } })).then((it) => it.close(), ({ status }) => status);
  run.note('no grant', refused);
  const worker = await connectWorker(run.url);
  run.clients.push(worker);
  worker.send('register', { type: 0, agentName: 'bot', version: '1.0.0' });
  const { workerId, serverInfo } = await worker.until('register');
  run.note('register', { workerId, agentProtocol: serverInfo.agentProtocol });
  worker.send('ping', { timestamp: 5n });
  run.note('pong', Number((await worker.until('pong')).lastTimestamp));
  worker.send('updateWorker', { status: 0, load: 0.1 });
  const dispatch = await run.twirp('create', 'AgentDispatchService/CreateDispatch', { room: 'workers', agentName: 'bot', metadata: 'm' }, adminToken('workers'));
  const { job } = await worker.until('availability');
  run.note('offered', { dispatch: job.dispatchId === dispatch.id, room: job.room.name, type: job.type, agentName: job.agentName, metadata: job.metadata });
  worker.send('availability', { jobId: job.id, available: true, participantIdentity: 'agent-1', participantName: 'Bot', participantAttributes: { a: 'b' } });
  const { token } = await worker.until('assignment');
  const { video, kind, sub, name, attributes } = decodeJwt(token);
  run.note('token', { video, kind, sub, name, attributes });
  const agent = await run.join({ token });
  run.note('agent joins', (await agent.until('join')).participant.kind);
  await run.twirp('delete', 'AgentDispatchService/DeleteDispatch', { room: 'workers', dispatchId: dispatch.id }, adminToken('workers'));
  await worker.until('termination');
  await run.twirp('delete the room', 'RoomService/DeleteRoom', { room: 'workers' }, adminToken('workers'));
}
