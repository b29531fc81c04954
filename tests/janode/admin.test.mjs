// Janode's admin client: sessions, handles, what is known of them, captures.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Janode from 'janode';
import EchoTest from 'janode/plugins/echotest';
import { isReference, startServer } from '../server/index.mjs';
import { offer } from './offer.mjs';

Janode.Logger?.setLevel?.('none');

describe('Janode’s admin client', { skip: isReference && 'the reference’s is not turned on' }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'portunus-captures-'));
  let server;
  let admin;
  let connection;
  let session;
  let handle;

  before(async () => {
    const config = `[admin]\nsecret = "s3"\nbind = ["127.0.0.1"]\ncapture_folder = ${JSON.stringify(folder)}\n`;
    server = await startServer({ workers: 1, config });
    connection = await Janode.connect({ address: { url: server.ws }, max_retries: 0 });
    session = await connection.create();
    handle = await session.attach(EchoTest);
    await handle.start({ audio: true, video: false, jsep: offer() });
    const address = { url: server.admin.replace('http:', 'ws:'), apisecret: 's3' };
    admin = await Janode.connect({ is_admin: true, address, max_retries: 0 });
  });

  after(async () => {
    await admin?.close();
    await connection?.close();
    assert.equal(await server?.stop(), 0, 'exit status of the server');
    rmSync(folder, { recursive: true, force: true });
  });

  it('gets the server’s info', async () => {
    assert.equal((await admin.getInfo()).janus, 'server_info');
  });

  it('lists sessions and their handles', async () => {
    const { sessions } = await admin.listSessions();
    assert.deepEqual(sessions, [session.id]);
    const { handles } = await admin.listHandles(session.id);
    assert.deepEqual(handles, [handle.id]);
  });

  it('tells what is known of a handle', async () => {
    const { info } = await admin.handleInfo(session.id, handle.id);
    assert.equal(info.plugin, 'janus.plugin.echotest');
    assert.equal(info.flags.negotiated, true);
    assert.match(info.sdps.local, /^v=0/);
    assert.equal(info.webrtc.dtls['dtls-role'], 'passive');
  });

  it('captures packets into a file', async () => {
    await admin.startPcap(session.id, handle.id, folder, 'call.pcap', 100);
    const { info } = await admin.handleInfo(session.id, handle.id);
    assert.equal(info['dump-to-pcap'], true);
    await assert.rejects(admin.startPcap(session.id, handle.id, folder, 'other.pcap'), /already started/);
    await admin.stopPcap(session.id, handle.id);
    assert.ok(existsSync(join(folder, 'call.pcap')));
    await assert.rejects(admin.stopPcap(session.id, handle.id), /not started/);
    await assert.rejects(admin.startPcap(session.id, handle.id, tmpdir(), 'a.pcap'), /within/);
  });

  it('is told what is wrong', async () => {
    await assert.rejects(admin.handleInfo(session.id, handle.id + 1), /No such handle/);
    const address = { url: server.admin.replace('http:', 'ws:'), apisecret: 'wrong' };
    const stranger = await Janode.connect({ is_admin: true, address, max_retries: 0 });
    await assert.rejects(stranger.listSessions(), /Unauthorized/);
    await stranger.close();
  });
});
