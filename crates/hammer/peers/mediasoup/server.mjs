// Video rooms of mediasoup by the Janus API over WebSocket: as much of it as portunus-hammer uses to measure them, with one worker.
import { parseArgs } from 'node:util';
import { createWorker, version } from 'mediasoup';
import { WebSocketServer } from 'ws';
import { Room } from './room.mjs';

const { values: options } = parseArgs({
  options: {
    ip: { type: 'string', default: '127.0.0.1' },
    port: { type: 'string', default: '8188' },
    media: { type: 'string', default: '10000' },
    version: { type: 'boolean', default: false },
  },
});
const worker = await createWorker({ logLevel: 'error' });
if (options.version) {
  console.log(`mediasoup ${version}, one worker`);
  process.exit(0);
}
worker.on('died', () => process.exit(1));
const server = await worker.createWebRtcServer({
  listenInfos: [{ protocol: 'udp', ip: options.ip, port: Number(options.media), sendBufferSize: 4 << 20, recvBufferSize: 4 << 20 }],
});
const rooms = new Map();
let ids = 1000;

/** A handle: somebody who publishes, or who watches. */
class Handle {
  async message(body, jsep) {
    switch (body.request) {
      case 'create': {
        ids += 1;
        rooms.set(ids, await Room.create(worker, server, ids));
        return { data: { videoroom: 'created', room: ids, permanent: false }, janus: 'success' };
      }
      case 'destroy':
        this.roomOf(body).close();
        rooms.delete(body.room);
        return { data: { videoroom: 'destroyed', room: body.room }, janus: 'success' };
      case 'join':
        return body.ptype === 'publisher' ? this.join(body) : this.watch(body);
      case 'publish':
      case 'configure': {
        const sdp = await this.room.publish(this.publisher, jsep.sdp);
        return { data: { videoroom: 'event', room: this.room.id, configured: 'ok' }, jsep: { type: 'answer', sdp } };
      }
      case 'start':
        await this.room.start(this.subscriber, jsep.sdp);
        return { data: { videoroom: 'event', room: this.room.id, started: 'ok' } };
      case 'leave':
      case 'unpublish':
        this.close();
        return { data: { videoroom: 'event', left: 'ok' } };
      default:
        throw new Error(`no such request: ${body.request}`);
    }
  }

  roomOf({ room }) {
    const found = rooms.get(room);
    if (!found) throw new Error(`no such room: ${room}`);
    return found;
  }

  join(body) {
    this.room = this.roomOf(body);
    this.publisher = this.room.join();
    return { data: { videoroom: 'joined', room: this.room.id, id: this.publisher.id, publishers: [] } };
  }

  async watch(body) {
    this.room = this.roomOf(body);
    this.subscriber = {};
    const feeds = body.feed === undefined ? body.streams.map(({ feed }) => feed) : [body.feed];
    const sdp = await this.room.watch(this.subscriber, [...new Set(feeds)]);
    return { data: { videoroom: 'attached', room: this.room.id }, jsep: { type: 'offer', sdp } };
  }

  close() {
    if (this.publisher) this.room.leave(this.publisher);
    this.subscriber?.transport?.close();
  }
}

/** A client's connection with its sessions. */
class Client {
  constructor(socket) {
    this.socket = socket;
    this.sessions = new Map();
    socket.on('message', (text) => this.receive(JSON.parse(text)));
    socket.on('close', () => this.sessions.forEach((handles) => handles.forEach((handle) => handle.close())));
  }

  async receive(request) {
    const { transaction, session_id: session, handle_id: sender } = request;
    const send = (message) => this.socket.send(JSON.stringify({ transaction, ...(session && { session_id: session }), ...message }));
    try {
      await this.answer(request, send);
    } catch (error) {
      const data = { videoroom: 'event', error_code: 499, error: error.message };
      send({ janus: 'event', sender, plugindata: { plugin: 'janus.plugin.videoroom', data } });
    }
  }

  async answer(request, send) {
    const { session_id: session, handle_id: sender } = request;
    const handles = this.sessions.get(session);
    switch (request.janus) {
      case 'info':
        return send({ janus: 'server_info', name: 'mediasoup', version_string: version });
      case 'create':
        ids += 1;
        this.sessions.set(ids, new Map());
        return send({ janus: 'success', data: { id: ids } });
      case 'attach':
        ids += 1;
        handles.set(ids, new Handle());
        return send({ janus: 'success', data: { id: ids } });
      case 'message': {
        const { data, jsep, janus = 'event' } = await handles.get(sender).message(request.body, request.jsep);
        return send({ janus, sender, plugindata: { plugin: 'janus.plugin.videoroom', data }, ...(jsep && { jsep }) });
      }
      case 'detach':
        handles.get(sender)?.close();
        handles.delete(sender);
        return send({ janus: 'success' });
      case 'destroy':
        handles.forEach((handle) => handle.close());
        this.sessions.delete(session);
        return send({ janus: 'success' });
      default:
        return send({ janus: 'ack' });
    }
  }
}

const sockets = new WebSocketServer({ host: options.ip, port: Number(options.port), handleProtocols: () => 'janus-protocol' });
sockets.on('connection', (socket) => new Client(socket));
