// How figures are written.

/** bit/s. */
export function bitrate(bits: number): string {
  return bits >= 1e6 ? `${(bits / 1e6).toFixed(2)} Mbit/s` : `${Math.round(bits / 1e3)} kbit/s`;
}

/** A share, 0 to 1. */
export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
