// A far end that does what a scenario says and echoes the sound: Debian's sipp.
import { freeTcpPort, freeUdpPorts, tcpPortTaken, udpPortTaken } from '../server/ports.mjs';
import { Child, folderFor } from './child';

export interface SippOptions {
  transport?: 'udp' | 'tcp';
  /** How many of the packets of SIP it loses, in per cent. */
  lost?: number;
}

const folder = new URL('../sip/', import.meta.url).pathname;

/** Answers one call; gives its address. */
export async function startAnswering(options: SippOptions = {}): Promise<{ child: Child; uri: string }> {
  const port = await freeTcpPort();
  const child = await start('answers', port, [], options);
  await child.until('socket', () => (options.transport === 'tcp' ? tcpPortTaken(port) : udpPortTaken(port)));
  return { child, uri: `sip:echo@127.0.0.1:${port}${options.transport === 'tcp' ? ';transport=tcp' : ''}` };
}

/** Calls a user of a server's, talks for so many milliseconds, and hangs up. */
export async function startCalling(server: string, user: string, milliseconds: number, options: SippOptions = {}): Promise<Child> {
  return start('calls', await freeTcpPort(), [server, '-s', user, '-d', String(milliseconds)], options);
}

/** Calls a room, enters the pin 1234 by INFO, stays for so many milliseconds, and hangs up. */
export async function startDialIn(server: string, room: number, milliseconds: number): Promise<Child> {
  return start('dials-in', await freeTcpPort(), [server, '-s', String(room), '-d', String(milliseconds)], {});
}

async function start(scenario: string, port: number, args: string[], { transport = 'udp', lost = 0 }: SippOptions): Promise<Child> {
  const media = await freeUdpPorts(4);
  return new Child(`sipp ${scenario}`, '/usr/bin/sipp', [
    ...['-sf', `${folder}${scenario}.xml`, '-i', '127.0.0.1', '-p', String(port), '-t', transport === 'tcp' ? 't1' : 'u1', '-m', '1'],
    ...['-rtp_echo', '-mi', '127.0.0.1', '-mp', String(media), '-nostdin', '-timeout', '60', '-timeout_error', '-trace_err'],
    ...(lost ? ['-lost', String(lost)] : []),
    ...args,
  ], folderFor('sipp'));
}
