// Janode's own module for the audio bridge: what it asks, and what it makes of the answers. Media is in browser/janode-audio.spec.ts.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Janode from 'janode';
import AudioBridge from 'janode/plugins/audiobridge';
import { isReference, startServer } from '../server/index.mjs';

Janode.Logger?.setLevel?.('none');

const ADMIN_KEY = 'k3y';
const { EVENT } = AudioBridge;

describe('Janode’s audio bridge', { skip: isReference && 'needs a key of its own' }, () => {
  let folder;
  let server;
  let connection;
  let session;
  let manager;
  const create = (options) => manager.create({ secret: 's', admin_key: ADMIN_KEY, ...options });

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'portunus-janode-'));
    writeFileSync(join(folder, 'no-sound.opus'), 'this is no Ogg');
    const config = `\n[recording]\ndir = ${JSON.stringify(folder)}\n[audiobridge]\nadmin_key = "${ADMIN_KEY}"\nfolders = [${JSON.stringify(folder)}]\n`;
    server = await startServer({ workers: 1, config });
    connection = await Janode.connect({ address: { url: server.ws }, max_retries: 0 });
    session = await connection.create();
    manager = await session.attach(AudioBridge);
  });

  after(async () => {
    await session?.destroy();
    await connection?.close();
    assert.equal(await server?.stop(), 0, 'exit status of the server');
    rmSync(folder, { recursive: true });
  });

  it('creates, finds, lists and destroys rooms', async () => {
    const created = await create({ room: 77, description: 'Mine', sampling_rate: 48000, talking_events: true, expected_loss: 5, prebuffer: 2 });
    assert.deepEqual(created, { room: 77, permanent: false });
    assert.deepEqual(await manager.exists({ room: 77 }), { room: 77, exists: true });
    const { list } = await manager.list();
    assert.equal(list.length, 1);
    assert.deepEqual(
      { ...list[0] },
      { room: 77, description: 'Mine', sampling_rate: 48000, spatial_audio: false, pin_required: false, record: false, muted: false, num_participants: 0 },
    );
    const { participants } = await manager.listParticipants({ room: 77 });
    assert.deepEqual(participants, []);
    assert.equal((await manager.destroy({ room: 77, secret: 's' })).room, 77);
    assert.deepEqual(await manager.exists({ room: 77 }), { room: 77, exists: false });
  });

  it('joins, configures, mutes, suspends and kicks', async () => {
    const { room } = await create({});
    const [ann, ben] = [await session.attach(AudioBridge), await session.attach(AudioBridge)];
    const joined = await ann.join({ room, feed: 1, display: 'Ann', quality: 5, volume: 120 });
    assert.equal(joined.feed, 1);
    assert.deepEqual(joined.participants, []);
    const comes = once(ann, EVENT.AUDIOBRIDGE_PEER_JOINED);
    const second = await ben.join({ room, feed: 2, display: 'Ben', muted: true });
    assert.deepEqual(second.participants.map(({ feed, display }) => [feed, display]), [[1, 'Ann']]);
    assert.equal((await comes)[0].feed, 2);
    const changes = once(ben, EVENT.AUDIOBRIDGE_PEER_CONFIGURED);
    const configured = await ann.configure({ display: 'Anna', muted: true, bitrate: 20000, expected_loss: 3, prebuffer: 3 });
    assert.deepEqual([configured.feed, configured.display], [1, 'Anna']);
    assert.equal((await changes)[0].display, 'Anna');
    for (const [method, name] of [['unmute', 'unmuted'], ['mute', 'muted']]) {
      assert.equal((await manager[method]({ room, feed: 1, secret: 's' })).feed, 1, name);
    }
    await manager.muteRoom({ room, secret: 's' });
    await manager.unmuteRoom({ room, secret: 's' });
    await manager.suspend({ room, feed: 2, secret: 's' });
    await manager.resume({ room, feed: 2, secret: 's' });
    await assert.rejects(ann.join({ room }), /491/);
    await assert.rejects(manager.kick({ room, feed: 1, secret: 'wrong' }), /489/);
    const kicked = once(ann, EVENT.AUDIOBRIDGE_PEER_KICKED);
    assert.deepEqual(await manager.kick({ room, feed: 2, secret: 's' }), { room, feed: 2 });
    assert.equal((await kicked)[0].feed, 2);
    // It comes back, and hears of nothing until it goes on.
    const back = await ben.join({ room, feed: 3, suspended: true, pause_events: true });
    assert.deepEqual(back.participants.map(({ feed }) => feed), [1]);
    const listed = (await ann.listParticipants({ room })).participants.find(({ feed }) => feed === 3);
    assert.equal(listed.suspended, true);
    const [resumed, seen] = [once(ben, EVENT.AUDIOBRIDGE_RESUMED), once(ann, EVENT.AUDIOBRIDGE_PEER_RESUMED)];
    await manager.resume({ room, feed: 3, secret: 's' });
    assert.deepEqual((await resumed)[0].participants.map(({ feed, display }) => [feed, display]), [[1, 'Anna']]);
    assert.equal((await seen)[0].feed, 3);
    const leaving = once(ben, EVENT.AUDIOBRIDGE_PEER_LEAVING);
    assert.equal((await ann.leave()).feed, 1);
    assert.equal((await leaving)[0].feed, 1);
    await ann.audioHangup();
    const destroyed = once(ben, EVENT.AUDIOBRIDGE_DESTROYED);
    await manager.destroy({ room, secret: 's' });
    assert.equal((await destroyed)[0].room, room);
  });

  it('joins rooms with a PIN, a group or a token only with these', async () => {
    const { room } = await create({ pin: '42', groups: ['a', 'b'] });
    const ann = await session.attach(AudioBridge);
    await assert.rejects(ann.join({ room, group: 'a' }), /483/);
    await assert.rejects(ann.join({ room, pin: '43', group: 'a' }), /489/);
    await assert.rejects(ann.join({ room, pin: '42', group: 'c' }), /494/);
    await manager.allow({ room, secret: 's', action: 'enable' });
    await manager.allow({ room, secret: 's', action: 'add', list: ['let-me-in'] });
    await assert.rejects(ann.join({ room, pin: '42', group: 'a', token: 'me-too' }), /489/);
    assert.equal((await ann.join({ room, pin: '42', group: 'a', token: 'let-me-in', codec: 'pcma' })).room, room);
    assert.equal((await ann.configure({ group: 'b', quality: 3, volume: 50 })).group, 'b');
    await manager.destroy({ room, secret: 's' });
  });

  it('changes tokens, forwards, and records', async () => {
    const { room } = await create({ groups: ['a', 'b'] });
    const allow = (action, list) => manager.allow({ room, secret: 's', action, list });
    assert.deepEqual((await allow('enable')).list, []);
    assert.deepEqual((await allow('add', ['x'])).list, ['x']);
    assert.deepEqual((await allow('remove', ['x'])).list, []);
    assert.equal((await allow('disable')).list, undefined);
    const to = { room, secret: 's', host: '127.0.0.1', audio_port: 9, codec: 'pcmu', always: true };
    const { forwarder } = await manager.startForward({ ...to, group: 'b' });
    assert.deepEqual([forwarder.host, forwarder.audio_port, forwarder.group], ['127.0.0.1', 9, 'b']);
    const { forwarders } = await manager.listForward({ room, secret: 's' });
    assert.equal(forwarders[0].audio_stream, forwarder.audio_stream);
    await assert.rejects(manager.startForward({ ...to, group: 'c' }), /494/);
    assert.equal((await manager.stopForward({ room, stream: forwarder.audio_stream, secret: 's' })).forwarder.audio_stream, forwarder.audio_stream);
    assert.equal((await manager.enableRecording({ room, record: true, filename: 'mix', secret: 's' })).record, true);
    assert.equal((await manager.enableRecording({ room, record: false, secret: 's' })).record, false);
    await manager.destroy({ room, secret: 's' });
  });

  it('asks for announcements', async () => {
    const { room } = await create({});
    const about = { room, secret: 's' };
    await assert.rejects(manager.playFile({ ...about, filename: join(folder, 'no-sound.opus') }), /499/);
    assert.equal((await manager.isPlaying({ ...about, file_id: 'f' })).playing, false);
    assert.equal((await manager.stopFile({ ...about, file_id: 'f' })).file_id, 'f');
    assert.deepEqual((await manager.stopAllFiles(about)).file_id_list, []);
    assert.deepEqual((await manager.listAnnouncements(about)).announcements, []);
    await manager.destroy(about);
  });

  it('brings in plain RTP participants', async () => {
    const { room } = await create({ allow_rtp: true });
    const line = await session.attach(AudioBridge);
    const { rtp_participant } = await line.join({ room, codec: 'pcmu', rtp_participant: { ip: '127.0.0.1', port: 9 } });
    assert.ok(rtp_participant.port > 0);
    assert.equal((await line.leave()).room, room);
    await manager.destroy({ room, secret: 's' });
  });
});
