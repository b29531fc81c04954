// LiveKit's port by TLS.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { freeTcpPort } from '../server/ports.mjs';
import { startPortunus } from '../server/portunus.mjs';
import { joinRoom } from './signal.mjs';
import { KEY, SECRET, joinToken } from './tokens.mjs';

const skip = process.env.LIVEKIT_URL && 'another server';

/** Starts a server. `more` is further configuration, `keys` are of the section. */
async function start(keys = '', more = '') {
  const port = await freeTcpPort();
  const config = `[livekit]\nkeys = { ${KEY} = "${SECRET}" }\nbind = ["127.0.0.1"]\nport = ${port}\n${keys}\n${more}`;
  return { server: await startPortunus({ config }), host: `127.0.0.1:${port}` };
}

test('by TLS, with the certificate of the server', { skip }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'portunus-livekit-'));
  const [certificate, key] = ['cert.pem', 'key.pem'].map((name) => join(folder, name));
  execFileSync('openssl', [
    'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1',
    '-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', certificate,
  ], { stdio: 'ignore' });
  const { server, host } = await start('tls = true', `[tls]\ncertificate = "${certificate}"\nkey = "${key}"\n`);
  try {
    const ca = readFileSync(certificate);
    const token = joinToken('tls', 'al');
    const status = await new Promise((done, fail) => {
      get(`https://${host}/rtc/validate?access_token=${token}`, { ca }, (response) => done(response.resume().statusCode)).on('error', fail);
    });
    assert.equal(status, 200);
    const al = await joinRoom(`https://${host}`, { token, tls: { ca } });
    assert.equal((await al.until('join')).participant.identity, 'al');
    al.close();
    await assert.rejects(fetch(`http://${host}/`));
    assert.match(server.log(), new RegExp(`LiveKit +wss://${host}`));
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true });
  }
});
