// Janode brings no types.
declare module 'janode' {
  const Janode: any;
  export default Janode;
}
declare module 'janode/plugins/videoroom' {
  const VideoRoom: any;
  export default VideoRoom;
}
declare module 'janode/plugins/textroom' {
  const TextRoom: any;
  export default TextRoom;
}
declare module 'janode/plugins/streaming' {
  const Streaming: any;
  export default Streaming;
}
declare module 'janode/plugins/audiobridge' {
  const AudioBridge: any;
  export default AudioBridge;
}
