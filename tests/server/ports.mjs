// Ports that are free, for what tests start.
import { connect, createServer } from 'node:net';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';

/** A TCP port of the loopback interface that nobody uses. */
export async function freeTcpPort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

/**
 * The first of `count` UDP ports in a row that nobody uses.
 * @param {number} count
 * @returns {Promise<number>}
 */
export async function freeUdpPorts(count) {
  for (;;) {
    const first = 20_000 + Math.floor(Math.random() * 12_000);
    const taken = await Promise.all(Array.from({ length: count }, (_, index) => udpPortTaken(first + index)));
    if (!taken.includes(true)) return first;
  }
}

/**
 * Whether somebody uses a UDP port.
 * @param {number} port
 */
export async function udpPortTaken(port) {
  const socket = createSocket('udp4');
  try {
    socket.bind(port);
    await once(socket, 'listening');
    return false;
  } catch {
    return true;
  } finally {
    socket.close();
  }
}

/**
 * Whether somebody listens at a TCP port of the loopback interface.
 * @param {number} port
 */
export function tcpPortTaken(port) {
  return new Promise((done) => {
    const socket = connect(port, '127.0.0.1', () => done(true)).on('error', () => done(false));
    socket.on('connect', () => socket.destroy());
  });
}
