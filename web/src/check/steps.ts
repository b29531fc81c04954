// The rows of the connection check.
import { make } from '../make';

export type StepId = 'http' | 'websocket' | 'udp' | 'tcp' | 'turn-udp' | 'turn-tcp' | 'turn-tls' | 'send' | 'receive' | 'quality';

/** `none`: the server does not offer it. `skipped`: something before it failed. */
export type State = 'waiting' | 'running' | 'good' | 'poor' | 'bad' | 'none' | 'skipped';

export interface Outcome {
  state: State;
  /** The observation, as a sentence. */
  reason: string;
  /** How long it took, in ms. */
  time?: number;
}

const NAMES: Record<StepId, string> = {
  http: 'HTTP',
  websocket: 'WebSocket',
  udp: 'Media by UDP',
  tcp: 'Media by TCP',
  'turn-udp': 'Media by TURN over UDP',
  'turn-tcp': 'Media by TURN over TCP',
  'turn-tls': 'Media by TURN over TLS',
  send: 'Sending',
  receive: 'Receiving',
  quality: 'Delay and loss',
};

/** What each step is about, until it has been tried. */
const HINTS: Record<StepId, string> = {
  http: 'whether the server is reached at all',
  websocket: 'how pages and server talk',
  udp: 'the usual way of sound and picture',
  tcp: 'the way where UDP is blocked',
  'turn-udp': 'by a relay, where nothing leads to the server itself',
  'turn-tcp': 'by a relay, where UDP is blocked, too',
  'turn-tls': 'by a relay, where all but HTTPS is blocked',
  send: 'a picture and a tone',
  receive: 'the same, back from the server',
  quality: 'whether people would be heard in time',
};

const WORDS: Record<State, string> = {
  waiting: '–',
  running: 'running…',
  good: 'works',
  poor: 'poor',
  bad: 'fails',
  none: 'not offered',
  skipped: 'not tried',
};

export const STEPS = Object.keys(NAMES) as StepId[];

export class Steps {
  private readonly known = new Map<StepId, Outcome>();
  private readonly rows = new Map<StepId, { state: HTMLElement; reason: HTMLElement; row: HTMLElement }>();

  constructor(list: HTMLElement) {
    for (const id of STEPS) {
      const row = make('li', { testid: `step-${id}` });
      const [state, reason] = [make('span', { className: 'state' }), make('span', { className: 'soft reason' })];
      row.append(make('strong', { text: NAMES[id] }), state, reason);
      list.append(row);
      this.rows.set(id, { state, reason, row });
    }
    this.clear();
  }

  clear(): void {
    for (const id of STEPS) this.set(id, { state: 'waiting', reason: '' });
  }

  set(id: StepId, outcome: Outcome): void {
    this.known.set(id, outcome);
    const shown = this.rows.get(id);
    if (!shown) return;
    shown.row.dataset['state'] = outcome.state;
    shown.state.textContent = WORDS[outcome.state];
    shown.reason.textContent = detail(outcome) || (outcome.state === 'waiting' ? HINTS[id] : '');
  }

  outcomes(): ReadonlyMap<StepId, Outcome> {
    return this.known;
  }

  /** One line for each row, as text. */
  lines(): string[] {
    return STEPS.map((id) => {
      const outcome = this.known.get(id) ?? { state: 'waiting' as const, reason: '' };
      return `${NAMES[id].padEnd(23)} ${WORDS[outcome.state].padEnd(12)} ${detail(outcome)}`.trimEnd();
    });
  }
}

function detail({ reason, time }: Outcome): string {
  const took = time === undefined ? '' : `${Math.round(time)} ms`;
  return [took, reason].filter((part) => part !== '').join('; ');
}
