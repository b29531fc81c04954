// Differences to livekit-server that are meant, with their reasons. Patterns are regular expressions of whole texts.

/** @type {{ session?: string, step?: string, path?: string, reason: string }[]} */
export const KNOWN = [
  { session: 'tokens', step: '.*: no expiry', reason: 'a token without `exp` is refused: it would be valid for ever. LiveKit 1.13.5 takes it' },
  { session: 'tokens', step: '.*: name is a number', path: 'body', reason: 'the text about a claim of the wrong type is that of another parser' },
  { session: 'grants', step: '(Mute|UpdateSub|SendData|Forward|Move|PerformRpc).*: all', path: 'status', reason: 'a room that does not exist is 404 at once. LiveKit asks its nodes for one that has it, and answers 503 after 3 s' },
  { session: 'participants', step: '(subscriptions of nobody|rpc to nobody)', path: 'status', reason: 'the same for a participant' },
  { session: 'dispatches', step: 'list without a room', path: 'status', reason: 'the same for a room' },
  { session: 'workers', step: 'delete', path: 'body.state.jobs.*', reason: 'the jobs of a dispatch that ends are those that it had. LiveKit leaves out what began a moment ago' },
  { session: 'routes', step: '(/twirp/livekit.Nothing/.*|/twirp|get /(settings/regions|nothing))', reason: 'the text of a 404 is that of Twirp, or empty, instead of that of Go' },
  { session: 'routes', step: '(preflight|cross-origin)', path: 'access-control-.*', reason: 'all origins, methods and headers are allowed by asterisks instead of echoes' },
  { session: 'routes', step: '(Egress|Ingress|SIP)/.*', path: 'status', reason: 'services that do not exist are unimplemented (501). LiveKit has them, without Redis they are internal errors (500) or time out' },
  { path: '.*turn_?[pP]assword', reason: 'rooms have no password for TURN: clients get credentials of their own in `ice_servers`' },
  { path: '.*enabled_?(publish_?)?[cC]odecs', reason: 'RED and RTX are not listed: audio in RED is not taken, and RTX is not used' },
  { session: 'rooms', step: 'create without a name', reason: 'a room needs a name' },
];
