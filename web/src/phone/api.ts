// Requests and events of the SIP plugin, and its addresses and failures as text.

export const SIP = 'janus.plugin.sip';

export type Result = Record<string, any>;

/** The account as the user entered it. */
export interface Account {
  server: string;
  user: string;
  secret: string;
  display: string;
  transport: 'udp' | 'tcp' | 'tls';
  srtp: '' | 'sdes_optional' | 'sdes_mandatory';
  authuser: string;
  proxy: string;
  outbound: string;
  page: string;
  guest: boolean;
}

/** The state of one of the pages on the account, as in `lines`. */
export interface Line {
  id: number;
  name?: string;
  self?: boolean;
  helper?: boolean;
  call_status: string;
  call_id?: string;
  peer?: string;
  displayname?: string;
  /** Seconds since 1970. */
  since?: number;
  outgoing?: boolean;
  held?: boolean;
  resumable?: boolean;
}

/** A call that waits for a page to come back to it. */
export interface Waiting {
  call_id: string;
  username: string;
}

export const identity = (account: Account): string => `sip:${account.user}@${account.server}`;

/** The request that registers an account. */
export function registration(account: Account): Record<string, unknown> {
  const { secret, display, authuser, page, guest, transport } = account;
  const server = `${transport === 'tls' ? 'sips' : 'sip'}:${account.server}${transport === 'tcp' ? ';transport=tcp' : ''}`;
  // Addresses do not say how their host is reached: what is not UDP goes by the own server.
  const outbound = account.outbound || (transport === 'udp' ? '' : server);
  return {
    request: 'register',
    username: identity(account),
    ...(guest ? { type: 'guest' } : { secret }),
    ...(display && { display_name: display }),
    ...(authuser && { authuser }),
    proxy: account.proxy || server,
    ...(outbound && { outbound_proxy: outbound }),
    ...(transport === 'tcp' && { force_tcp: true }),
    ...(transport === 'tls' && { sips: true }),
    lines: true,
    name: page,
  };
}

/** The address that a number or name stands for; on the account's server if it names none. */
export function address(text: string, server: string): string {
  const plain = text.trim().replace(/^<|>$/g, '');
  if (/^sips?:/i.test(plain)) return plain;
  if (plain.includes('@')) return `sip:${plain}`;
  // Numbers are written with blanks and brackets.
  const user = /^[+\d\s()./-]+$/.test(plain) ? plain.replace(/[^+\d]/g, '') : plain;
  return `sip:${user}@${server}`;
}

/** An address as people write it: that of a user of the own server is the user. */
export function shown(uri: string, server: string, displayname = ''): string {
  const name = displayname.replace(/^"|"$/g, '').trim();
  if (name) return name;
  const plain = uri.replace(/^sips?:/i, '').replace(/[;?].*$/, '');
  const [user, host] = plain.split('@');
  return user && (host === server || host?.split(':')[0] === server.split(':')[0]) ? user : plain;
}

/** Why a registration failed. */
export function registrationFailure(code: number, reason: string): string {
  switch (code) {
    case 401:
    case 403:
    case 407:
    case 904:
      return `The server refuses this user and password (${code}).`;
    case 404:
      return 'The server does not know this user (404).';
    case 408:
      return 'The server does not answer (408). Is its name right, and does it take this transport?';
    case 503:
      return `The server cannot be reached (503 ${reason}).`;
    default:
      return `The server did not register you: ${code} ${reason}.`;
  }
}

/** The end of a call, by the codes and reasons of SIP. */
export interface CallEnd {
  code: number;
  reason: string;
  /** A sentence of the server's, if it has ended the call by itself. */
  text?: string;
}

/** Why a call ended; null if it is nothing to tell. */
export function ending({ code, reason, text }: CallEnd, peer: string): string | null {
  if (text) return `The call with ${peer} has ended: ${text}.`;
  if (/elsewhere/i.test(reason)) return `The call with ${peer} was ${reason.toLowerCase().replace(' elsewhere', '')} on another page of yours.`;
  switch (code) {
    case 200:
    case 487:
      return null;
    case 401:
    case 403:
    case 407:
    case 904:
      return `You may not call ${peer}: the server refuses it (${code}).`;
    case 404:
    case 604:
      return `${peer} is unknown there (${code}).`;
    case 408:
      return `${peer} did not answer (408).`;
    case 480:
      return `${peer} cannot be reached now (480).`;
    case 486:
    case 600:
      return `${peer} is busy.`;
    case 488:
    case 606:
      if (reason && !/^not acceptable/i.test(reason)) return `The call with ${peer} has ended: ${reason} (${code}).`;
      return `${peer} and this page have no codec or encryption in common (${code}).`;
    case 503:
      return `${peer} cannot be reached (503 ${reason}).`;
    case 603:
      return `${peer} declined the call.`;
    default:
      return `The call to ${peer} failed: ${code} ${reason}.`;
  }
}
