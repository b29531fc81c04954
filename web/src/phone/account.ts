// The form of the account, and what the tab keeps of it.
import { choose, element } from '../page';
import type { Account } from './api';

const KEY = 'portunus.phone';

/** The state that survives a reload. */
interface Kept {
  account: Account;
  /** The Call-IDs that it had. */
  calls: string[];
}

const FIELDS = {
  server: 'server',
  user: 'user',
  secret: 'secret',
  display: 'display',
  transport: 'transport',
  srtp: 'srtp',
  authuser: 'authuser',
  proxy: 'proxy',
  outbound: 'outbound',
  page: 'page-name',
} as const;

export class AccountForm {
  private readonly guest = element<HTMLInputElement>('guest');

  constructor(entered: (account: Account) => void) {
    const query = new URLSearchParams(window.location.search);
    for (const [key, id] of Object.entries(FIELDS)) {
      const field = element<HTMLInputElement | HTMLSelectElement>(id);
      const preset = query.get(key) ?? (key === 'page' ? browserName() : '');
      if (field instanceof HTMLSelectElement) choose(field, preset);
      else field.value = preset;
    }
    this.guest.checked = query.get('guest') === '1';
    this.guest.addEventListener('change', () => this.showSecret());
    this.showSecret();
    element<HTMLFormElement>('account-form').addEventListener('submit', (event) => {
      event.preventDefault();
      entered(this.account);
    });
  }

  get account(): Account {
    const value = (id: string) => element<HTMLInputElement>(id).value.trim();
    const fields = Object.fromEntries(Object.entries(FIELDS).map(([key, id]) => [key, value(id)]));
    return { ...(fields as unknown as Account), secret: element<HTMLInputElement>('secret').value, guest: this.guest.checked };
  }

  /** Shows what was entered before a reload. */
  fill(account: Account): void {
    for (const [key, id] of Object.entries(FIELDS)) element<HTMLInputElement>(id).value = String(account[key as keyof typeof FIELDS] ?? '');
    this.guest.checked = account.guest;
    this.showSecret();
  }

  private showSecret(): void {
    element('secret-field').hidden = this.guest.checked;
  }
}

/** Reads the tab's storage; some browsers allow none. */
export function kept(): Kept | null {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? 'null') as Kept | null;
  } catch {
    return null;
  }
}

/** Keeps the account for a reload, as long as the tab is open; null: forgets it. */
export function keep(what: Kept | null): void {
  try {
    if (what) sessionStorage.setItem(KEY, JSON.stringify(what));
    else sessionStorage.removeItem(KEY);
  } catch {
    // After a reload it is entered again.
  }
}

/** The name of this browser, such as `Firefox on Android`. */
function browserName(): string {
  const agent = navigator.userAgent;
  const browser = /Firefox|Edg|Chrome|Safari/.exec(agent)?.[0] ?? 'Browser';
  const system = /Android|iPhone|iPad|Windows|Mac OS|Linux/.exec(agent)?.[0] ?? 'a device';
  return `${browser === 'Edg' ? 'Edge' : browser} on ${system}`;
}
