// Janode as server-side applications use it: sessions, handles, messages, errors, over each of its transports.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import Janode from 'janode';
import EchoTest from 'janode/plugins/echotest';
import { isReference, startServer } from '../server/index.mjs';
import { offer } from './offer.mjs';
import { VideoCall } from './videocall.mjs';

Janode.Logger?.setLevel?.('none');

for (const transport of ['WebSocket', 'Unix socket']) {
  describe(`Janode over ${transport}`, { skip: isReference && transport !== 'WebSocket' && 'the reference has none' }, () => {
    let server;
    let connection;

    before(async () => {
      server = await startServer({ workers: 1, unix: 'datagram' });
      const url = transport === 'WebSocket' ? server.ws : `file://${server.unix}`;
      connection = await Janode.connect({ address: { url }, max_retries: 0 });
    });

    after(async () => {
      await connection?.close();
      assert.equal(await server?.stop(), 0, 'exit status of the server');
    });

    it('gets the server’s info', async () => {
      const info = await connection.getInfo();
      assert.equal(info.janus, 'server_info');
      assert.ok(info.plugins['janus.plugin.echotest']);
      assert.ok(info.plugins['janus.plugin.videocall']);
    });

    it('creates and destroys sessions', async () => {
      const session = await connection.create();
      assert.equal(typeof session.id, 'number');
      const other = await connection.create();
      assert.notEqual(session.id, other.id);
      await session.destroy();
      await other.destroy();
    });

    it('keeps a session alive', async () => {
      const session = await connection.create();
      const answer = await session.sendRequest({ janus: 'keepalive' });
      assert.equal(answer.janus, 'ack');
      await session.destroy();
    });

    it('attaches, gets results of messages, and detaches', async () => {
      const session = await connection.create();
      const handle = await session.attach(EchoTest);
      const answer = await handle.start({ audio: true, video: false, jsep: offer(), bitrate: 128000 });
      assert.equal(answer.result, 'ok');
      assert.equal(answer.jsep.type, 'answer');
      assert.match(answer.jsep.sdp, /^v=0/);
      assert.match(answer.jsep.sdp, /a=fingerprint:sha-256 /);
      assert.match(answer.jsep.sdp, /a=candidate:/);
      await handle.trickle([{ sdpMid: '0', sdpMLineIndex: 0, candidate: 'candidate:1 1 udp 2130706431 127.0.0.1 9 typ host' }]);
      await handle.trickleComplete();
      await handle.hangup();
      await handle.detach();
      await session.destroy();
    });

    it('gives the plugin’s errors', async () => {
      const session = await connection.create();
      const handle = await session.attach(EchoTest);
      await assert.rejects(handle.message({ bitrate: 'much' }), /^Error: 413 /);
      await assert.rejects(handle.message({ substream: 7 }), /^Error: 413 /);
      await session.destroy();
    });

    it('gives the core’s errors', async () => {
      const session = await connection.create();
      await assert.rejects(session.attach({ id: 'janus.plugin.nosuch' }), /460 /);
      await assert.rejects(session.sendRequest({ janus: 'dance' }), /45[37] /);
      const handle = await session.attach(EchoTest);
      await assert.rejects(handle.sendRequest({ janus: 'message' }), /456 /);
      await handle.detach();
      await session.destroy();
    });

    it('tells that a handle was detached with its session', async () => {
      const session = await connection.create();
      const handle = await session.attach(EchoTest);
      const detached = once(handle, Janode.EVENT.HANDLE_DETACHED);
      await session.destroy();
      await detached;
    });

    it('serves many handles at a time', async () => {
      const session = await connection.create();
      // Janode gives up when the kernel's queue of a datagram socket is full: ten messages by default.
      const length = transport === 'WebSocket' ? 50 : 8;
      const handles = await Promise.all(Array.from({ length }, () => session.attach(EchoTest)));
      assert.equal(new Set(handles.map((handle) => handle.id)).size, length);
      const answers = await Promise.all(handles.map((handle) => handle.message({ audio: true })));
      assert.ok(answers.every(({ plugindata }) => plugindata.data.result === 'ok'));
      await session.destroy();
    });

    it('rings and hangs up a video call', async () => {
      const session = await connection.create();
      const [ann, ben] = await Promise.all([session.attach(VideoCall), session.attach(VideoCall)]);
      const [annName, benName] = [`ann-${process.pid}-${transport}`, `ben-${process.pid}-${transport}`];
      assert.equal((await ann.request({ request: 'register', username: annName })).event, 'registered');
      await ben.request({ request: 'register', username: benName });
      const { list } = await ann.request({ request: 'list' });
      assert.ok(list.includes(annName) && list.includes(benName));
      await assert.rejects(ann.request({ request: 'register', username: 'again' }), /477 /);
      await assert.rejects(ann.request({ request: 'call', username: 'nobody-of-that-name' }), /478 |482 /);
      await assert.rejects(ann.request({ request: 'dance' }), /472 /);

      const ringing = once(ben, 'incomingcall');
      assert.equal((await ann.request({ request: 'call', username: benName }, offer())).event, 'calling');
      const [{ username, jsep }] = await ringing;
      assert.equal(username, annName);
      assert.equal(jsep.type, 'offer');
      const ended = once(ann, 'hangup');
      await ben.request({ request: 'hangup', reason: 'not now' });
      assert.equal((await ended)[0].reason, 'not now');
      await session.destroy();
    });
  });
}
