"""An RTSP server for tests, `gst_server.py PORT basic|digest`: H.264 and PCMA at /av, over TCP only at /tcp, with the login
user:secret at /login.

Needs python3-gi, gir1.2-gst-rtsp-server-1.0 and the GStreamer plugins (good, ugly). Prints its port once it listens;
ends with its standard input.
"""

import sys
import threading

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer

VIDEO = (
    "videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=15/1 "
    "! x264enc tune=zerolatency speed-preset=ultrafast key-int-max=15 bitrate=300 ! rtph264pay name=pay0 pt=96 "
)
AUDIO = "audiotestsrc is-live=true ! audio/x-raw,rate=8000,channels=1 ! alawenc ! rtppcmapay name=pay1 pt=8"


def main():
    Gst.init(None)
    loop = GLib.MainLoop()
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service(sys.argv[1])

    auth = GstRtspServer.RTSPAuth()
    methods = {"basic": GstRtsp.RTSPAuthMethod.BASIC, "digest": GstRtsp.RTSPAuthMethod.DIGEST}
    auth.set_supported_methods(methods[sys.argv[2]])
    token = GstRtspServer.RTSPToken()
    token.set_string("media.factory.role", "user")
    auth.add_digest("user", "secret", token)
    auth.add_basic(GstRtspServer.RTSPAuth.make_basic("user", "secret"), token)
    anybody = GstRtspServer.RTSPToken()
    anybody.set_string("media.factory.role", "anybody")
    auth.set_default_token(anybody)
    server.set_auth(auth)

    def mount(path, roles, protocols=None):
        factory = GstRtspServer.RTSPMediaFactory()
        factory.set_launch("( " + VIDEO + AUDIO + " )")
        # A pipeline for each client: a shared one answers 503 to whoever comes while it is taken down.
        factory.set_shared(False)
        if protocols is not None:
            factory.set_protocols(protocols)
        permissions = GstRtspServer.RTSPPermissions()
        for role in ["anybody", "user"]:
            permissions.add_role(role)
            # Who may see it but not have it is asked for a login.
            permissions.add_permission_for_role(role, "media.factory.access", True)
            permissions.add_permission_for_role(role, "media.factory.construct", role in roles)
        factory.set_permissions(permissions)
        server.get_mount_points().add_factory(path, factory)

    mount("/av", ["anybody", "user"])
    mount("/tcp", ["anybody", "user"], GstRtsp.RTSPLowerTrans.TCP)
    mount("/login", ["user"])

    server.attach(None)
    print(server.get_bound_port(), flush=True)

    def until_end():
        sys.stdin.read()
        # The loop may not run yet.
        GLib.idle_add(loop.quit)

    threading.Thread(target=until_end, daemon=True).start()
    loop.run()


main()
