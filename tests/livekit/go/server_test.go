// Package livekit tests the server by LiveKit's own clients for Go, as their authors publish them.
package livekit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/livekit/livekit-server/pkg/telemetry/prometheus"
	"github.com/livekit/protocol/auth"
	"github.com/livekit/protocol/livekit"
)

const (
	key    = "devkey"
	secret = "secretsecretsecretsecretsecretsecret"
)

// url is the address of the server under test: ours, or the one that LIVEKIT_URL names.
var url string

// isOurs tells whether it is ours.
var isOurs bool

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	// livekit-server's test client counts by the metrics of a server.
	if err := prometheus.Init("test", livekit.NodeType_SERVER); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if url = os.Getenv("LIVEKIT_URL"); url != "" {
		url = strings.Replace(strings.TrimSuffix(url, "/"), "http", "ws", 1)
		return m.Run()
	}
	isOurs = true
	stop, err := start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	status := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "the server ended with an error:", err)
		return 1
	}
	return status
}

// start starts the server by the code that all tests share.
func start() (stop func() error, err error) {
	port, turn := freePort(), freePort()
	config := fmt.Sprintf(`
[livekit]
keys = { %s = %q }
bind = ["127.0.0.1"]
port = %d

[turn]
enabled = true
port = %d
`, key, secret, port, turn)
	server := exec.Command("node", "../../server/serve.mjs")
	server.Env = append(os.Environ(), "SERVER_CONFIG="+config)
	server.Stderr = os.Stderr
	in, err := server.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := server.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := server.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("the server did not start: %w", err)
	}
	var addresses map[string]string
	if err := json.Unmarshal(line, &addresses); err != nil {
		return nil, err
	}
	url = fmt.Sprintf("ws://127.0.0.1:%d", port)
	go io.Copy(io.Discard, out)
	return func() error {
		// It stops the server when its input ends.
		in.Close()
		return server.Wait()
	}, nil
}

// freePort returns a port of the loopback interface that nobody uses, or 0.
func freePort() int {
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0
	}
	defer probe.Close()
	return probe.Addr().(*net.TCPAddr).Port
}

// httpURL returns where the services are.
func httpURL() string {
	return strings.Replace(url, "ws", "http", 1)
}

// roomOf returns a room for a test alone.
func roomOf(t *testing.T) string {
	return strings.ReplaceAll(t.Name(), "/", " ")
}

// A customizer changes the token of a participant.
type customizer func(token *auth.AccessToken, grant *auth.VideoGrant)

// tokenOf returns a token by which somebody joins a room.
func tokenOf(t *testing.T, room, identity string, customize customizer) string {
	t.Helper()
	token := auth.NewAccessToken(key, secret).SetIdentity(identity).SetName(strings.ToUpper(identity))
	grant := &auth.VideoGrant{RoomJoin: true, Room: room}
	if customize != nil {
		customize(token, grant)
	}
	text, err := token.SetVideoGrant(grant).ToJWT()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}
