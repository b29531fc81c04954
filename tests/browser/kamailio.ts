// A real registrar and proxy of SIP: Debian's Kamailio.
import { execFileSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { freeTcpPort, udpPortTaken } from '../server/ports.mjs';
import { Child, folderFor } from './child';

const PROGRAM = '/usr/sbin/kamailio';
const CONFIGURATION = new URL('../sip/kamailio.cfg', import.meta.url).pathname;

/** Leaves the test out where the programs are not installed. */
export function needsPhones(): void {
  const missing = [PROGRAM, '/usr/bin/baresip', '/usr/bin/linphonec', '/usr/bin/sipp'].filter((program) => !existsSync(program));
  test.skip(missing.length > 0, `scripts/setup sip was not run: there is no ${missing.join(', ')}`);
}

export interface Kamailio {
  /** Its port for UDP and TCP, that for TLS and that for WebSockets. */
  port: number;
  tls: number;
  ws: number;
  /** Its host and port, as addresses of users have it. */
  domain: string;
  /** A file with the certificate that it shows. */
  certificate: string;
  uri(user: string): string;
  secret(user: string): string;
  log(): string;
  stop(): Promise<void>;
}

/** Starts it; `digest` is how passwords are checked. */
export async function startKamailio(digest: 'MD5' | 'SHA-256' = 'MD5'): Promise<Kamailio> {
  const folder = folderFor('kamailio');
  const [port, tls, ws] = [await freePort(), await freeTcpPort(), await freeTcpPort()];
  const [key, certificate, tlsFile] = ['key.pem', 'certificate.pem', 'tls.cfg'].map((name) => join(folder, name)) as [string, string, string];
  execFileSync('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=localhost'],
    ...['-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-addext', 'basicConstraints=critical,CA:FALSE', '-keyout', key, '-out', certificate],
  ], { stdio: 'ignore' });
  const common = `method = TLSv1.2+\nverify_certificate = no\n`;
  writeFileSync(tlsFile, `[server:default]\n${common}private_key = ${key}\ncertificate = ${certificate}\n[client:default]\n${common}`);
  const definitions = { SIP_PORT: port, TLS_PORT: tls, WS_PORT: ws, DIGEST: `"${digest}"`, TLS_FILE: `"${tlsFile}"` };
  const child = new Child('Kamailio', PROGRAM, [
    ...['-f', CONFIGURATION, '-DD', '-E', '-w', folder, '-Y', folder, '-P', join(folder, 'pid')],
    ...Object.entries(definitions).flatMap(([name, value]) => ['-A', `${name}=${value}`]),
  ], folder);
  await child.until('answer to OPTIONS', () => answers(port));
  return {
    port,
    tls,
    ws,
    domain: `127.0.0.1:${port}`,
    certificate,
    uri: (user) => `sip:${user}@127.0.0.1:${port}`,
    secret: (user) => `${user}-secret`,
    log: () => child.log(),
    stop: () => child.stop(),
  };
}

/** A port that is free for UDP and TCP. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = await freeTcpPort();
    if (!(await udpPortTaken(port))) return port;
  }
}

/** Whether a SIP server answers at this port. */
async function answers(port: number): Promise<boolean> {
  const socket = createSocket('udp4');
  try {
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    const own = `127.0.0.1:${socket.address().port}`;
    const id = Math.random().toString(36).slice(2);
    socket.send(
      [
        `OPTIONS sip:127.0.0.1:${port} SIP/2.0`,
        `Via: SIP/2.0/UDP ${own};branch=z9hG4bK${id};rport`,
        `From: <sip:probe@elsewhere.test>;tag=${id}`,
        `To: <sip:127.0.0.1:${port}>`,
        `Call-ID: ${id}`,
        'CSeq: 1 OPTIONS',
        'Max-Forwards: 70',
        'Content-Length: 0\r\n\r\n',
      ].join('\r\n'),
      port,
      '127.0.0.1',
    );
    const answer = once(socket, 'message').then(([data]) => String(data));
    return (await Promise.race([answer, new Promise<string>((done) => setTimeout(done, 200, ''))])).startsWith('SIP/2.0 200');
  } finally {
    socket.close();
  }
}
