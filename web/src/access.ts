// The API secret and the token of servers that ask for them: entered once, and kept as long as the tab is open.
import { make } from './make';

/** The credentials of every request. */
export interface Access {
  apisecret?: string;
  token?: string;
}

/** The entered credentials open the API, but lack the right for this request. */
export class AccessDenied extends Error {}

const KEY = 'portunus.access';

/** Reads the tab's storage; some browsers allow none. */
let known: Access = read();
let asking: Promise<Access> | null = null;

export function access(): Access {
  return known;
}

/** Keeps what has opened the API. */
export function keepAccess(opened: Access): void {
  known = opened;
  store(opened);
}

/** The stored credentials are no longer accepted. */
export function forgetAccess(): void {
  known = {};
  store({});
}

/** Asks the user for the secret or a token; `refused` if what they entered last was wrong. */
export function askAccess(refused: boolean): Promise<Access> {
  asking ??= ask(refused).finally(() => (asking = null));
  return asking;
}

function ask(refused: boolean): Promise<Access> {
  const form = make('form', { className: 'card wide stack', testid: 'access' });
  const why = refused ? 'That is not what the server asks for.' : 'This server asks for its API secret or for a token.';
  const text = make('p', { text: why, testid: 'access-why' });
  text.setAttribute('role', 'alert');
  const fields = make('div', { className: 'fields' });
  const [secretField, secret] = field('API secret', 'access-secret');
  const [tokenField, token] = field('Token', 'access-token');
  fields.append(secretField, tokenField);
  const row = make('div', { className: 'row' });
  row.append(make('button', { className: 'primary', text: 'Open', testid: 'access-open' }));
  form.append(text, fields, row);
  document.getElementById('notice')?.before(form);
  secret.focus();
  return new Promise((entered) => {
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      form.remove();
      entered({ ...(secret.value && { apisecret: secret.value }), ...(token.value && { token: token.value }) });
    });
  });
}

function field(name: string, id: string): [HTMLElement, HTMLInputElement] {
  const root = make('div');
  const label = make('label', { text: name });
  const input = make('input', { testid: id });
  label.htmlFor = input.id = id;
  input.type = 'password';
  input.autocomplete = 'off';
  root.append(label, input);
  return [root, input];
}

function read(): Access {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? '{}') as Access;
  } catch {
    return {};
  }
}

function store(kept: Access): void {
  try {
    if (Object.keys(kept).length > 0) sessionStorage.setItem(KEY, JSON.stringify(kept));
    else sessionStorage.removeItem(KEY);
  } catch {
    // It is asked for again after a reload.
  }
}
