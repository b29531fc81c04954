// What this browser keeps between visits. Some browsers allow none; then nothing is kept.

const PREFIX = 'portunus-';

export function remembered(key: string): string {
  try {
    return localStorage.getItem(PREFIX + key) ?? '';
  } catch {
    return '';
  }
}

/** An empty value is forgotten. */
export function remember(key: string, value: string): void {
  try {
    if (value) localStorage.setItem(PREFIX + key, value);
    else localStorage.removeItem(PREFIX + key);
  } catch {
    // The browser keeps nothing.
  }
}
