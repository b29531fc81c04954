// The server that the tests talk to: ours, or a reference that the environment names.
import { startPortunus } from './portunus.mjs';
import { startReference } from './reference.mjs';

/** Whether the tests run against another server than ours. */
export const isReference = !!process.env.REFERENCE_HTTP;

/** @returns {Promise<import('./portunus.mjs').Server>} */
export function startServer(options) {
  const { REFERENCE_HTTP: http, REFERENCE_WS: ws } = process.env;
  return http && ws ? startReference(http, ws) : startPortunus(options);
}
