// Janode's own module for streaming: what it asks of the control plane, and what it makes of the answers. What needs
// media is in browser/janode.spec.ts.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Janode from 'janode';
import Streaming from 'janode/plugins/streaming';
import { isReference, startServer } from '../server/index.mjs';
import { answer } from './offer.mjs';

Janode.Logger?.setLevel?.('none');

const ADMIN_KEY = 'k3y';
const { EVENT } = Streaming;
const OPUS = { type: 'audio', mid: 'a', port: 0, pt: 111, codec: 'opus' };
const VP8 = { type: 'video', mid: 'v', port: 0, rtcpport: 0, pt: 96, codec: 'vp8' };

describe('Janode’s streaming', { skip: isReference && 'needs a key of its own' }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'portunus-janode-'));
  let server;
  let connection;
  let session;
  let manager;

  before(async () => {
    const save = join(folder, 'mountpoints.toml');
    const config = `\n[recording]\ndir = "${folder}"\n[streaming]\nadmin_key = "${ADMIN_KEY}"\nsave = "${save}"\n`;
    server = await startServer({ workers: 1, config });
    connection = await Janode.connect({ address: { url: server.ws }, max_retries: 0 });
    session = await connection.create();
    manager = await session.attach(Streaming);
  });

  after(async () => {
    await session?.destroy();
    await connection?.close();
    const status = await server?.stop();
    rmSync(folder, { recursive: true, force: true });
    assert.equal(status, 0, 'exit status of the server');
  });

  const create = (options) => manager.createRtpMountpoint({ admin_key: ADMIN_KEY, media: [OPUS, VP8], ...options });

  it('creates with members of each kind, shows and destroys', async () => {
    const audio = { port: 0, pt: 111, rtpmap: 'opus/48000/2', skew: true };
    const video = { port: 0, port2: 0, port3: 0, rtcpport: 0, pt: 96, rtpmap: 'VP8/90000', buffer: true };
    const flat = { media: undefined, audio, video, data: { port: 0, buffer: true } };
    const { id, ...created } = await create({ ...flat, name: 'cam', description: 'A camera', secret: 's', pin: '1234', is_private: true, metadata: 'm', collision: 500 });
    assert.ok(Number.isSafeInteger(id) && id > 0, `${id}`);
    assert.deepEqual([created.name, created.description], ['cam', 'A camera']);
    for (const port of ['audio_port', 'video_port', 'video_port_2', 'video_port_3', 'video_rtcp_port', 'data_port']) {
      assert.ok(created[port] > 0, `${port}: ${created[port]}`);
    }

    const listed = async (options) => (await manager.list(options)).list.find((one) => one.id === id);
    assert.equal(await listed(), undefined);
    assert.equal((await listed({ admin_key: ADMIN_KEY })).description, 'A camera');
    await assert.rejects(manager.list({ admin_key: 'guess' }), /457 /);

    const shown = await manager.info({ id });
    assert.deepEqual(shown.media.map(({ mid, type }) => [mid, type]), [['a', 'audio'], ['v', 'video'], ['d', 'data']]);
    assert.deepEqual([shown.collision, shown.metadata, shown.pin], [500, 'm', undefined]);
    const all = await manager.info({ id, secret: 's' });
    assert.deepEqual([all.name, all.pin, all.secret, all.viewers], ['cam', '1234', 's', 0]);
    await assert.rejects(manager.info({ id: 1 }), /455 /);

    await assert.rejects(create({ id }), /456 /);
    await assert.rejects(create({ admin_key: undefined }), /453 /);
    await assert.rejects(create({ admin_key: 'guess' }), /457 /);
    await assert.rejects(create({ media: [] }), /456 /);
    await assert.rejects(create({ media: [{ ...VP8, port: 'x' }] }), /454 /);
    await assert.rejects(manager.destroyMountpoint({ id }), /453 /);
    await assert.rejects(manager.destroyMountpoint({ id, secret: 'guess' }), /457 /);
    assert.deepEqual(await manager.destroyMountpoint({ id, secret: 's' }), { id });
    await assert.rejects(manager.destroyMountpoint({ id, secret: 's' }), /455 /);
  });

  it('makes what stays', async () => {
    const { id } = await create({ id: 55, name: 'stays', permanent: true });
    assert.equal(id, 55);
    await assert.rejects(create({ id: 56, name: 'stays', permanent: true }), /456 /);
    assert.deepEqual(await manager.destroyMountpoint({ id, permanent: true }), { id });
  });

  it('turns off and on, and records', async () => {
    const { id } = await create({ secret: 's' });
    const enabled = async () => (await manager.info({ id })).enabled;
    await assert.rejects(manager.disable({ id }), /453 /);
    await manager.disable({ id, secret: 's', stop_recording: false });
    assert.equal(await enabled(), false);
    await manager.enable({ id, secret: 's' });
    assert.equal(await enabled(), true);

    const recorded = async () => (await manager.info({ id, secret: 's' })).media.map((one) => one.recording !== undefined);
    await manager.startRecording({ id, secret: 's', media: [{ mid: 'v', filename: 'picture' }] });
    assert.deepEqual(await recorded(), [false, true]);
    await manager.startRecording({ id, secret: 's', audio: 'sound' });
    assert.deepEqual(await recorded(), [true, true]);
    assert.ok(existsSync(join(folder, 'picture.mjr')) && existsSync(join(folder, 'sound.mjr')));
    await manager.stopRecording({ id, secret: 's', media: [{ mid: 'a' }] });
    assert.deepEqual(await recorded(), [false, true]);
    await manager.stopRecording({ id, secret: 's' });
    assert.deepEqual(await recorded(), [false, false]);
    await assert.rejects(manager.startRecording({ id, secret: 's', media: [{ mid: 'x', filename: 'y' }] }), /454 /);
    await assert.rejects(manager.startRecording({ id, secret: 's', audio: '../sound' }), /459 /);
    await manager.destroyMountpoint({ id, secret: 's' });
  });

  it('watches, configures, switches and is told of the end', async () => {
    const { id } = await create({ pin: '1234' });
    const { id: other } = await create();
    const viewer = await session.attach(Streaming);
    await assert.rejects(viewer.watch({ id }), /453 /);
    await assert.rejects(viewer.watch({ id, pin: '4321' }), /457 /);
    await assert.rejects(viewer.watch({ id: 1 }), /455 /);
    await assert.rejects(viewer.pause(), /455 /);

    const watched = await viewer.watch({ id, pin: '1234', audio: true, video: true, data: false });
    assert.deepEqual([watched.status, watched.jsep.type], ['preparing', 'offer']);
    assert.match(watched.jsep.sdp, /a=rtpmap:96 VP8\/90000/);
    const started = await viewer.start({ jsep: answer(watched.jsep) });
    assert.deepEqual([started.status, started.id], ['starting', id]);
    assert.equal((await manager.info({ id })).viewers, 1);
    await viewer.configure({ audio: false, video: true, data: false, substream: 1, temporal: 1, fallback: 250000 });
    await assert.rejects(viewer.configure({ substream: 3 }), /454 /);
    assert.equal((await viewer.pause()).status, 'pausing');
    assert.deepEqual(await viewer.switch({ id: other }), { switched: 'ok', id: other });
    assert.deepEqual([(await manager.info({ id })).viewers, (await manager.info({ id: other })).viewers], [0, 1]);
    await assert.rejects(viewer.switch({ id: 1 }), /455 /);

    const told = once(viewer, EVENT.STREAMING_STATUS);
    await manager.destroyMountpoint({ id: other });
    assert.deepEqual((await told)[0], { status: 'stopped', id: other });
    await manager.destroyMountpoint({ id });
  });
});
