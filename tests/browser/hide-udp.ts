// A browser that no UDP gets through to.

/** Runs in the page before its scripts: neither side hears of the other's candidates of UDP. */
export function hideUdp(): void {
  const isUdp = (line: string) => /^(a=)?candidate:\S+ \d+ udp /i.test(line);
  const without = (sdp = '') => sdp.split(/(?<=\n)/).filter((line) => !isUdp(line)).join('');
  const connection = RTCPeerConnection.prototype;
  // Of their overloads those with promises.
  const setRemoteDescription: (description: RTCSessionDescriptionInit) => Promise<void> = connection.setRemoteDescription;
  const addIceCandidate: (candidate?: RTCIceCandidateInit | null) => Promise<void> = connection.addIceCandidate;
  connection.setRemoteDescription = function (description: RTCSessionDescriptionInit) {
    return setRemoteDescription.call(this, { ...description, type: description.type, sdp: without(description.sdp) });
  };
  connection.addIceCandidate = function (candidate?: RTCIceCandidateInit | null) {
    return isUdp(candidate?.candidate ?? '') ? Promise.resolve() : addIceCandidate.call(this, candidate ?? undefined);
  };
  const own = Object.getOwnPropertyDescriptor(connection, 'localDescription')!;
  Object.defineProperty(connection, 'localDescription', {
    get() {
      const description = own.get!.call(this) as RTCSessionDescription | null;
      return description && new RTCSessionDescription({ type: description.type, sdp: without(description.sdp) });
    },
  });
  const Original = window.RTCPeerConnection;
  window.RTCPeerConnection = new Proxy(Original, {
    construct(target, args, newTarget) {
      const made = Reflect.construct(target, args, newTarget) as RTCPeerConnection;
      // It is the first to listen.
      made.addEventListener('icecandidate', (event) => {
        if (event.candidate && isUdp(event.candidate.candidate)) event.stopImmediatePropagation();
      });
      return made;
    },
  });
}
