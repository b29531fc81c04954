//! Ports that collide.

use super::*;

#[test]
fn a_port_that_is_given_twice_is_told_with_both_keys() {
    for (text, expected) in [
        (
            "[http]\nport = 8188",
            "line 2: http.port: TCP port 8188 is that of websocket.port, too",
        ),
        (
            "[http]\nport = 7088",
            "line 2: http.port: TCP port 7088 is that of admin.port, too",
        ),
        (
            "[http]\nport = 80\n[sip]\nlisten = [\"udp:80\", \"ws:80\"]",
            "line 4: sip.listen: TCP port 80 is that of http.port, too",
        ),
        (
            "[http]\nhttps = true\nhttps_port = 8088\n[tls]\ncertificate = \"c\"\nkey = \"k\"",
            "line 3: http.https_port: TCP port 8088 is that of http.port, too",
        ),
        (
            "[http]\nmetrics_bind = \"127.0.0.1:8188\"",
            "line 2: http.metrics_bind: TCP port 8188 is that of websocket.port, too",
        ),
        (
            "[media]\nworkers = 4\nport = 5058\n[sip]\nlisten = [\"udp:5060\"]",
            "line 5: sip.listen: UDP port 5060 is that of media.port, too",
        ),
        (
            "[media]\nworkers = 4\none_port = true\nport = 5060\n[sip]\nlisten = [\"udp:5060\"]",
            "line 6: sip.listen: UDP port 5060 is that of media.port, too",
        ),
        (
            "[media]\nworkers = 4\nice_tcp = true\nice_tcp_port = 8085",
            "line 4: media.ice_tcp_port: TCP port 8088 is that of http.port, too",
        ),
        (
            "[sip]\nlisten = [\"udp:5060\", \"tcp:5060\", \"ws:5060\"]",
            "line 2: sip.listen: TCP port 5060 is there twice",
        ),
        (
            "[[streaming.mountpoint]]\nname = \"a\"\ntype = \"rtp\"\naudio = true\naudioport = 5002\naudiopt = 111\naudiocodec = \"opus\"\n\
             [[streaming.mountpoint]]\nname = \"b\"\ntype = \"rtp\"\naudio = true\naudioport = 5002\naudiopt = 111\naudiocodec = \"opus\"",
            "line 12: streaming.mountpoint.audioport: UDP port 5002 is there twice",
        ),
        (
            "[[streaming.mountpoint]]\nname = \"a\"\ntype = \"rtp\"\nmedia = [{ type = \"video\", mid = \"v\", port = 10000, codec = \"vp8\" }]\n\
             [media]\nworkers = 1",
            "line 4: streaming.mountpoint.media[0].port: UDP port 10000 is that of media.port, too",
        ),
        (
            "[media]\nworkers = 2\nport = 20000\n[nosip]\nrtp_port_range = \"20000-20001\"",
            "line 5: nosip.rtp_port_range: media.port leaves no pair of UDP ports in 20000-20001",
        ),
    ] {
        assert_eq!(mistakes(text), [expected], "{text}");
    }
}

#[test]
fn ports_that_can_be_had_side_by_side_are_no_mistake() {
    for text in [
        // Disabled listeners need no port.
        "[http]\nport = 8188\n[websocket]\nenabled = false",
        "[http]\nhttps_port = 8088",
        "[plugins.sip]\nenabled = false\n[sip]\nlisten = [\"udp:5060\", \"ws:8088\"]",
        // UDP beside TCP, and different addresses.
        "[sip]\nlisten = [\"udp:8088\"]",
        "[http]\nbind = [\"192.0.2.1\"]\nport = 80\n[websocket]\nbind = [\"192.0.2.2\"]\nport = 80",
        "[http]\nbind = [\"192.0.2.1\"]\nport = 7088",
        // Groups are listened to side by side, and port 0 is any.
        "[[streaming.mountpoint]]\nname = \"a\"\ntype = \"rtp\"\naudio = true\naudioport = 5002\naudiomcast = \"239.1.2.3\"\naudiopt = 111\naudiocodec = \"opus\"\n\
         [[streaming.mountpoint]]\nname = \"b\"\ntype = \"rtp\"\naudio = true\naudioport = 5002\naudiomcast = \"239.1.2.3\"\naudiopt = 111\naudiocodec = \"opus\"",
        "[[streaming.mountpoint]]\nname = \"a\"\ntype = \"rtp\"\naudio = true\naudioport = 0\naudiopt = 111\naudiocodec = \"opus\"\n\
         [[streaming.mountpoint]]\nname = \"b\"\ntype = \"rtp\"\naudio = true\naudioport = 0\naudiopt = 111\naudiocodec = \"opus\"",
        "[plugins.streaming]\nenabled = false\n[[streaming.mountpoint]]\nname = \"a\"\ntype = \"rtp\"\naudio = true\naudioport = 8088\naudiopt = 111\naudiocodec = \"opus\"",
        // Calls leave out what is taken.
        "[media]\nport = 20000\n[sip]\nrtp_port_range = \"20000-30000\"",
        "[http]\nport = 0\n[websocket]\nport = 0",
        // All workers together have one.
        "[media]\nworkers = 4\none_port = true\nport = 5058\nice_tcp = true\nice_tcp_port = 8085\n[sip]\nlisten = [\"udp:5060\"]",
    ] {
        assert_eq!(Config::parse(text).err(), None, "{text}");
    }
    // Where the administrators' port is on all addresses it is not.
    let all = "[http]\nbind = [\"192.0.2.1\"]\nport = 7088\n[admin]\nbind = [\"0.0.0.0\"]";
    assert_eq!(mistakes(all).len(), 1);
}
