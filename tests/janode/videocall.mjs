// A Janode plugin for the video call, as an application would write it for a plugin that Janode does not bring.
import Handle from 'janode/handle';

class VideoCallHandle extends Handle {
  handleMessage(message) {
    const data = message.plugindata?.data;
    if (data?.videocall !== 'event') return null;
    const event = this._newPluginEvent(message);
    const owned = this.ownsTransaction(message.transaction);
    if (data.error) {
      event.event = 'error';
      event.data = new Error(`${data.error_code} ${data.error}`);
      this.closeTransactionWithError(message.transaction, event.data);
      return event;
    }
    event.event = data.result.event ?? 'list';
    Object.assign(event.data, data.result);
    this.closeTransactionWithSuccess(message.transaction, message);
    if (!owned) this.emit(event.event, event.data);
    return event;
  }

  /** Sends a request and gives its result; an error of the plugin's is thrown. */
  async request(body, jsep) {
    const { data } = this._getPluginEvent(await this.message(body, jsep));
    return data;
  }
}

export const VideoCall = { id: 'janus.plugin.videocall', Handle: VideoCallHandle };
