// Starts the server for a test in another language: prints its addresses as a line of JSON, and stops it when the
// standard input ends.
import { startServer } from './index.mjs';

const server = await startServer({ workers: 2 });
console.log(JSON.stringify({ base: server.base, http: server.http, ws: server.ws }));
process.stdin.resume();
process.stdin.on('end', async () => {
  const status = await server.stop();
  if (status !== 0) console.error(server.log().slice(-4000));
  process.exit(status ?? 1);
});
