// A relay of UDP in front of a server's media ports: a bad network, and a NAT whose address and ports change. It needs no rights
// and no kernel that can lose packets.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { freeUdpPorts } from './ports.mjs';

/** A client without a datagram for so long is forgotten, in ms: longer than any outage of the tests. */
const IDLE_MS = 60_000;

/**
 * @typedef {object} Relay
 * @property {string} config keys of `[media]`, by which a server names the relay in place of itself
 * @property {(port: number) => void} to says where the server's first media port is, on the loopback interface
 * @property {(weather: Partial<Weather>) => void} set changes the network from now on
 * @property {(address?: string) => void} move gives all clients new ports towards the server, at this loopback address
 * @property {() => { relayed: number, lost: number, late: number, clients: number }} count counts datagrams, and clients
 * @property {() => void} close ends it
 */

/**
 * @typedef {object} Weather
 * @property {number} loss the share of datagrams that are lost, each way, 0 to 1
 * @property {number} late the share of datagrams that are held up for up to `delay`, so that later ones overtake them, 0 to 1
 * @property {number} delay in ms
 * @property {boolean} outage nothing gets through
 */

/**
 * Starts a relay for a server with so many workers.
 * @param {number} [workers]
 * @returns {Promise<Relay>}
 */
export async function startRelay(workers = 2) {
  const first = await freeUdpPorts(workers);
  /** @type {Weather} */
  let weather = { loss: 0, late: 0, delay: 40, outage: false };
  const counts = { relayed: 0, lost: 0, late: 0 };
  let server = 0;
  let address = '127.0.0.1';
  /** By the worker and the client's address. */
  const clients = new Map();

  /** Passes a datagram on, as the network is at the moment. */
  const pass = (send) => {
    if (weather.outage || Math.random() < weather.loss) {
      counts.lost += 1;
      return;
    }
    counts.relayed += 1;
    if (Math.random() < weather.late) {
      counts.late += 1;
      setTimeout(send, Math.random() * weather.delay);
    } else {
      send();
    }
  };

  const outside = await Promise.all(
    Array.from({ length: workers }, async (_, worker) => {
      const socket = createSocket('udp4');
      socket.on('message', (datagram, client) => {
        const known = clientOf(worker, client);
        known.seen = Date.now();
        pass(() => send(known.socket, datagram, server + worker));
      });
      socket.bind(first + worker, '127.0.0.1');
      await once(socket, 'listening');
      return socket;
    }),
  );

  /** The client's socket towards the server. */
  const towardsServer = (worker, client) => {
    const socket = createSocket('udp4');
    socket.on('message', (datagram) => pass(() => send(outside[worker], datagram, client.port, client.address)));
    // What is sent before a socket is bound waits for it.
    socket.bind(0, address);
    return socket;
  };

  const clientOf = (worker, client) => {
    const key = `${worker} ${client.address}:${client.port}`;
    if (!clients.has(key)) clients.set(key, { worker, client, socket: towardsServer(worker, client), seen: 0 });
    return clients.get(key);
  };

  const forget = setInterval(() => {
    for (const [key, { socket, seen }] of clients) {
      if (Date.now() - seen < IDLE_MS) continue;
      socket.close();
      clients.delete(key);
    }
  }, 5_000);
  forget.unref();

  return {
    config: `bind = ["127.0.0.1"]\nannounced = ["127.0.0.1=>127.0.0.1:${first}"]\n`,
    to: (port) => (server = port),
    set: (changes) => (weather = { ...weather, ...changes }),
    move: (to = address) => {
      address = to;
      for (const known of clients.values()) {
        known.socket.close();
        known.socket = towardsServer(known.worker, known.client);
      }
    },
    count: () => ({ ...counts, clients: clients.size }),
    close: () => {
      clearInterval(forget);
      for (const socket of [...outside, ...[...clients.values()].map((known) => known.socket)]) socket.close();
      clients.clear();
    },
  };
}

/** Sends by a socket that may have been closed while the datagram was held up. */
function send(socket, datagram, port, address = '127.0.0.1') {
  try {
    // Nobody may be there any more: that is no fault of the network.
    socket.send(datagram, port, address, () => {});
  } catch {
    // It is closed.
  }
}
