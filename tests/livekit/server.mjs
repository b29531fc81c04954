// The server under test: ours, on ports of its own, or the one that LIVEKIT_URL names.
import { freeTcpPort } from '../server/ports.mjs';
import { startPortunus } from '../server/portunus.mjs';
import { KEY, SECRET } from './tokens.mjs';

/**
 * Starts the server.
 * @param {string} [keys] further keys of the section
 * @returns {Promise<{ url: string, isOurs: boolean, stop: () => Promise<unknown>, restart: () => Promise<void> }>} `restart` ends ours
 *   and starts it again
 */
export async function startLiveKit(keys = '') {
  const url = process.env.LIVEKIT_URL;
  if (url) return { url, isOurs: false, stop: async () => {}, restart: async () => {} };
  const port = await freeTcpPort();
  const config = `[livekit]\nkeys = { ${KEY} = "${SECRET}" }\nbind = ["127.0.0.1"]\nport = ${port}\n${keys}\n`;
  const server = await startPortunus({ config });
  return { url: `http://127.0.0.1:${port}`, isOurs: true, stop: () => server.stop(), restart: () => server.kill('SIGINT').then(server.restart) };
}
