// How loud a stream is, shown in a meter.

export class Level {
  private readonly context = new AudioContext();
  private readonly timer: number;

  constructor(stream: MediaStream, meter: HTMLMeterElement) {
    const analyser = this.context.createAnalyser();
    analyser.fftSize = 1024;
    this.context.createMediaStreamSource(stream).connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    this.timer = window.setInterval(() => {
      analyser.getFloatTimeDomainData(samples);
      const square = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
      // From -60 dB to the loudest.
      meter.value = Math.max(0, 1 + Math.log10(Math.max(square, 1e-12)) / 6);
    }, 50);
  }

  close(): void {
    window.clearInterval(this.timer);
    void this.context.close();
  }
}
