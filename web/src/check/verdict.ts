// One sentence about a connection check: what is wrong, and what to do.
import type { Outcome, StepId } from './steps';

export interface Verdict {
  kind: 'info' | 'warning' | 'error';
  text: string;
}

/** `gone`: the server went away during the check. */
export function verdict(outcomes: ReadonlyMap<StepId, Outcome>, gone: boolean): Verdict {
  const state = (id: StepId) => outcomes.get(id)?.state ?? 'skipped';
  const works = (id: StepId) => state(id) === 'good' || state(id) === 'poor';
  const error = (text: string): Verdict => ({ kind: 'error', text });
  const warning = (text: string): Verdict => ({ kind: 'warning', text });
  if (gone) return error('The server went away during the check: try again in a moment, and tell whoever runs it if it stays away.');
  if (!works('http') && !works('websocket')) return error('The server’s API does not answer: it is not running, or a proxy in front of it is set up wrong.');
  if (outcomes.get('udp')?.reason.startsWith('no session')) return error(`The server lets you in no further (${outcomes.get('udp')?.reason}): you need a token of whoever runs it.`);

  const relays = (['turn-udp', 'turn-tcp', 'turn-tls'] as const).filter(works);
  const hasRelays = (['turn-udp', 'turn-tcp', 'turn-tls'] as const).some((id) => state(id) !== 'none');
  if (!works('udp') && !works('tcp') && relays.length === 0) {
    const others = [state('tcp') === 'none' ? 'media.ice_tcp' : '', hasRelays ? '' : '[turn]'].filter((part) => part);
    const more = others.length > 0 ? `, or lets clients in by other ways (${others.join(', ')})` : '';
    const tried = state('tcp') === 'none' && !hasRelays ? 'UDP is' : 'UDP and all other ways are';
    return error(`${tried} blocked between you and the server, so that no call connects: try another network, or ask whoever runs the server to open its media ports, to check media.announced${more}.`);
  }
  if (state('send') === 'bad') return error(`The connection works, but nothing can be sent (${outcomes.get('send')?.reason}): try another browser.`);
  if (state('receive') === 'bad') return error('The connection works, but none of what was sent came back: a firewall may take media for something else and drop it.');

  const slow = works('websocket') ? '' : ' WebSocket is blocked, too, so that HTTP is used instead: let your proxy pass WebSocket upgrades on.';
  if (!works('udp') && works('tcp')) {
    return warning(`UDP is blocked between you and the server, but TCP works: calls connect, and falter when the network loses packets; ask for UDP to the server’s media ports to be opened.${slow}`);
  }
  if (!works('udp')) {
    const by = relays[0] === 'turn-udp' ? 'a relay (TURN)' : relays[0] === 'turn-tcp' ? 'a relay over TCP (TURN)' : 'a relay over TLS (TURN)';
    return warning(`The direct way to the server is blocked, but ${by} works: calls connect, with some more delay; ask for UDP to the server’s media ports to be opened.${slow}`);
  }
  if (state('quality') === 'poor') {
    return warning(`All ways work, but the network is poor (${outcomes.get('quality')?.reason}): calls will falter; use a cable, or another network.${slow}`);
  }
  if (slow) return warning(`Calls work.${slow.replace(', too,', '')}`);
  return { kind: 'info', text: 'All works: calls will connect from here by UDP, the best way.' };
}
