"""Sends AV1 as RTP to the port that is named, as ffmpeg 8 does: `send_av1.py PORT`."""

import sys
import time

import av


def main(port: int) -> None:
    with av.open(f"rtp://127.0.0.1:{port}?pkt_size=1200", "w", format="rtp", options={"strict": "experimental"}) as output:
        video = output.add_stream("libsvtav1", rate=25)
        video.width, video.height, video.pix_fmt = 320, 180, "yuv420p"
        video.codec_context.options = {"preset": "12", "svtav1-params": "pred-struct=1", "g": "25"}
        start = time.monotonic()
        number = 0
        while True:
            picture = av.VideoFrame(320, 180, "yuv420p")
            for plane in picture.planes:
                plane.update(bytes([number * 3 % 256]) * plane.buffer_size)
            picture.pts = number
            output.mux(video.encode(picture))
            number += 1
            time.sleep(max(0.0, start + number / 25 - time.monotonic()))


main(int(sys.argv[1]))
