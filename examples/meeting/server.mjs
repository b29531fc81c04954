// The backend: serves the page, and makes the tokens by which it joins. A real one asks first who somebody is.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { AccessToken } from 'livekit-server-sdk';

const { LIVEKIT_URL = 'ws://localhost:7880', LIVEKIT_API_KEY, LIVEKIT_API_SECRET, HOST = 'localhost', PORT = '3000' } = process.env;
if (!LIVEKIT_API_KEY || !LIVEKIT_API_SECRET) {
  console.error('LIVEKIT_API_KEY and LIVEKIT_API_SECRET are a key of [livekit] in portunus.toml, and its secret.');
  process.exit(1);
}

const file = (name, type) => ({ path: fileURLToPath(new URL(name, import.meta.url)), type });
const files = {
  '/': file('index.html', 'text/html; charset=utf-8'),
  '/meeting.js': file('meeting.js', 'text/javascript'),
  '/livekit-client.js': { path: fileURLToPath(import.meta.resolve('livekit-client')), type: 'text/javascript' },
};

async function answer(request) {
  const { pathname, searchParams } = new URL(request.url, 'http://localhost');
  if (request.method !== 'GET') return { status: 405 };
  if (pathname === '/token') {
    const [room, name] = [searchParams.get('room'), searchParams.get('name')];
    if (!room || !name) return { status: 400, type: 'text/plain', content: 'room and name are missing' };
    // The identity is another each time, so that two may have one name.
    const token = new AccessToken(LIVEKIT_API_KEY, LIVEKIT_API_SECRET, { identity: crypto.randomUUID(), name, ttl: '10m' });
    token.addGrant({ roomJoin: true, room });
    return { type: 'application/json', content: JSON.stringify({ url: LIVEKIT_URL, token: await token.toJwt() }) };
  }
  const found = Object.hasOwn(files, pathname) ? files[pathname] : undefined;
  return found ? { type: found.type, content: await readFile(found.path) } : { status: 404 };
}

const server = createServer(async (request, response) => {
  try {
    const { status = 200, type = 'text/plain', content = '' } = await answer(request);
    response.writeHead(status, { 'content-type': type }).end(content);
  } catch (error) {
    console.error(error);
    response.writeHead(500).end();
  }
});
server.listen(Number(PORT), HOST, () => console.log(`http://${HOST}:${server.address().port}/`));
