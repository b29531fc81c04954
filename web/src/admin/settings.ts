// Settings that can change while the server runs.
import { element } from '../page';
import { ask } from './api';

export class Settings {
  private readonly level = element<HTMLSelectElement>('log-level');
  private readonly accept = element<HTMLInputElement>('accept');

  /** `failed` receives the reason if a change fails. */
  constructor(private readonly failed: (error: unknown) => void) {
    this.level.addEventListener('change', () => this.change(this.level, 'set_log_level', { level: Number(this.level.value) }));
    this.accept.addEventListener('change', () => this.change(this.accept, 'accept_new_sessions', { accept: this.accept.checked }));
  }

  /** Reads what they are at present. */
  async read(accepting: boolean): Promise<void> {
    const { status } = await ask<{ status: { log_level: number } }>('get_status');
    // Of two levels that mean the same only one can be chosen.
    const shown = { 1: 2, 6: 5 }[status.log_level] ?? status.log_level;
    this.level.value = String(shown);
    this.accept.checked = accepting;
    this.level.disabled = this.accept.disabled = false;
  }

  private change(control: HTMLSelectElement | HTMLInputElement, verb: string, members: Record<string, unknown>): void {
    control.disabled = true;
    ask(verb, members)
      .catch(this.failed)
      .finally(() => {
        control.disabled = false;
        control.focus();
      });
  }
}
