// Access tokens, with everything that an SDK refuses to make.
import { createHmac } from 'node:crypto';

export const KEY = process.env.LIVEKIT_API_KEY ?? 'devkey';
export const SECRET = process.env.LIVEKIT_API_SECRET ?? 'secretsecretsecretsecretsecretsecret';

const part = (value) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

/**
 * Makes a token. `claims` replace the usual ones; a claim that is `undefined` is left out.
 * @param {Record<string, unknown>} [claims]
 * @param {{ header?: unknown, secret?: string }} [options]
 */
export function makeToken(claims = {}, { header = { alg: 'HS256', typ: 'JWT' }, secret = SECRET } = {}) {
  const now = Math.floor(Date.now() / 1000);
  const message = `${part(header)}.${part({ iss: KEY, nbf: now, exp: now + 600, ...claims })}`;
  return `${message}.${createHmac('sha256', secret).update(message).digest('base64url')}`;
}

/** A token of somebody who joins `room`. */
export const joinToken = (room, identity, video = {}, claims = {}) =>
  makeToken({ sub: identity, video: { roomJoin: true, room, ...video }, ...claims });

/** A token that moderates `room`, and creates and lists rooms. */
export const adminToken = (room, video = {}) =>
  makeToken({ video: { roomAdmin: true, roomCreate: true, roomList: true, room, ...video } });
