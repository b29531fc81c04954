// Starts the server for a test in another language: prints its addresses as a line of JSON, and stops it when the
// standard input ends. SERVER_CONFIG is added to its configuration, SERVER_HTTP to its section of that name.
import { startServer } from './index.mjs';

const server = await startServer({ workers: 2, config: process.env.SERVER_CONFIG, http: process.env.SERVER_HTTP ?? '' });
console.log(JSON.stringify({ base: server.base, http: server.http, ws: server.ws }));
process.stdin.resume();
process.stdin.on('end', async () => {
  const status = await server.stop();
  if (status !== 0) console.error(server.log().slice(-4000));
  process.exit(status ?? 1);
});
