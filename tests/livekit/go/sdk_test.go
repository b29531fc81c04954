package livekit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livekit/protocol/livekit"
	lksdk "github.com/livekit/server-sdk-go/v2"
	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media"
)

// LiveKit's SDK for Go. Its own end-to-end tests run as well: sdk.test.mjs.

// A guest is a participant with what happened to it.
type guest struct {
	*lksdk.Room
	mutex  sync.Mutex
	events []string
	// bytes counts what was received of each track, by its name.
	bytes map[string]int
}

// note notes an event.
func (g *guest) note(format string, values ...any) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.events = append(g.events, fmt.Sprintf(format, values...))
}

// got tells whether an event was noted.
func (g *guest) got(event string) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return slices.Contains(g.events, event)
}

// forget forgets the events so far.
func (g *guest) forget() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.events = nil
}

// hears waits for an event.
func (g *guest) hears(t *testing.T, event string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			g.mutex.Lock()
			defer g.mutex.Unlock()
			t.Logf("%s has heard %q", g.LocalParticipant.Identity(), g.events)
		}
	}()
	eventually(t, event, func() bool { return g.got(event) })
}

// flows waits until more of a track is received.
func (g *guest) flows(t *testing.T, track string) {
	t.Helper()
	count := func() int {
		g.mutex.Lock()
		defer g.mutex.Unlock()
		return g.bytes[track]
	}
	before := count()
	eventually(t, track+" flows", func() bool { return count() > before+100 })
}

// enter lets somebody enter the room of the test.
func enter(t *testing.T, identity string, options ...lksdk.ConnectOption) *guest {
	t.Helper()
	g := &guest{bytes: map[string]int{}}
	callback := &lksdk.RoomCallback{
		OnReconnecting:            func() { g.note("reconnecting") },
		OnReconnected:             func() { g.note("reconnected") },
		OnDisconnectedWithReason:  func(reason lksdk.DisconnectionReason) { g.note("disconnected: %s", reason) },
		OnParticipantConnected:    func(p *lksdk.RemoteParticipant) { g.note("%s enters", p.Identity()) },
		OnParticipantDisconnected: func(p *lksdk.RemoteParticipant) { g.note("%s leaves", p.Identity()) },
		OnActiveSpeakersChanged: func(speakers []lksdk.Participant) {
			for _, p := range speakers {
				g.note("%s speaks", p.Identity())
			}
		},
		ParticipantCallback: lksdk.ParticipantCallback{
			OnTrackSubscribed: func(track *webrtc.TrackRemote, publication *lksdk.RemoteTrackPublication, p *lksdk.RemoteParticipant) {
				g.note("%s of %s", publication.Name(), p.Identity())
				for {
					packet, _, err := track.ReadRTP()
					if err != nil {
						return
					}
					g.mutex.Lock()
					g.bytes[publication.Name()] += len(packet.Payload)
					g.mutex.Unlock()
				}
			},
			OnTrackUnpublished: func(publication *lksdk.RemoteTrackPublication, p *lksdk.RemoteParticipant) {
				g.note("%s of %s ends", publication.Name(), p.Identity())
			},
			OnTrackMuted: func(publication lksdk.TrackPublication, p lksdk.Participant) {
				g.note("%s is muted", publication.Name())
			},
			OnTrackUnmuted: func(publication lksdk.TrackPublication, p lksdk.Participant) {
				g.note("%s is unmuted", publication.Name())
			},
			OnMetadataChanged:   func(_ string, p lksdk.Participant) { g.note("metadata %s of %s", p.Metadata(), p.Identity()) },
			OnAttributesChanged: func(changed map[string]string, p lksdk.Participant) { g.note("%v of %s", changed, p.Identity()) },
			OnDataPacket: func(packet lksdk.DataPacket, params lksdk.DataReceiveParams) {
				if user, ok := packet.(*lksdk.UserDataPacket); ok {
					g.note("data %s %s of %s", user.Payload, user.Topic, params.SenderIdentity)
				}
			},
		},
	}
	room := lksdk.NewRoom(callback)
	g.Room = room
	token := tokenOf(t, roomOf(t), identity, nil)
	if err := room.JoinWithToken(url, token, options...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(room.Disconnect)
	return g
}

// modes are the numbers of PeerConnections.
var modes = map[string][]lksdk.ConnectOption{
	"two PeerConnections": nil,
	"one PeerConnection":  {lksdk.WithSinglePeerConnection()},
}

func inEachMode(t *testing.T, test func(t *testing.T, options ...lksdk.ConnectOption)) {
	t.Parallel()
	for name, options := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, options...)
		})
	}
}

// sends publishes a track of frames that nobody can decode, which does not matter to the server.
func (g *guest) sends(t *testing.T, name, mime string) *lksdk.LocalTrackPublication {
	t.Helper()
	codec := webrtc.RTPCodecCapability{MimeType: mime, ClockRate: 90_000}
	if mime == webrtc.MimeTypeOpus {
		codec.ClockRate, codec.Channels = 48_000, 2
	}
	track, err := lksdk.NewLocalTrack(codec)
	if err != nil {
		t.Fatal(err)
	}
	track.OnBind(func() { go write(t, track, mime) })
	publication, err := g.LocalParticipant.PublishTrack(track, &lksdk.TrackPublicationOptions{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return publication
}

// keyframe is the start of a keyframe of VP8 of 8×8 pixels.
var keyframe = []byte{0x10, 0x02, 0x00, 0x9d, 0x01, 0x2a, 0x08, 0x00, 0x08, 0x00}

// write writes samples to a track until the test ends.
func write(t *testing.T, track *lksdk.LocalTrack, mime string) {
	sample := media.Sample{Data: append(slices.Clone(keyframe), make([]byte, 100)...), Duration: 20 * time.Millisecond}
	var options *lksdk.SampleWriteOptions
	if mime == webrtc.MimeTypeOpus {
		sample.Data = make([]byte, 40)
		level := uint8(20)
		options = &lksdk.SampleWriteOptions{AudioLevel: &level}
	}
	ticker := time.NewTicker(sample.Duration)
	defer ticker.Stop()
	for {
		select {
		case <-t.Context().Done():
			return
		case <-ticker.C:
			// A track that has ended takes no samples.
			_ = track.WriteSample(sample, options)
		}
	}
}

func TestSDKTracks(t *testing.T) {
	inEachMode(t, func(t *testing.T, options ...lksdk.ConnectOption) {
		al, bo := enter(t, "al", options...), enter(t, "bo", options...)
		al.hears(t, "bo enters")
		microphone, camera := al.sends(t, "microphone", webrtc.MimeTypeOpus), al.sends(t, "camera", webrtc.MimeTypeVP8)
		for _, name := range []string{"microphone", "camera"} {
			bo.hears(t, name+" of al")
			bo.flows(t, name)
		}
		bo.hears(t, "al speaks")
		microphone.SetMuted(true)
		bo.hears(t, "microphone is muted")
		microphone.SetMuted(false)
		bo.hears(t, "microphone is unmuted")
		bo.flows(t, "microphone")
		if err := al.LocalParticipant.UnpublishTrack(camera.SID()); err != nil {
			t.Fatal(err)
		}
		bo.hears(t, "camera of al ends")
		al.sends(t, "second camera", webrtc.MimeTypeVP8)
		bo.hears(t, "second camera of al")
		bo.flows(t, "second camera")
		bo.sends(t, "voice", webrtc.MimeTypeOpus)
		al.hears(t, "voice of bo")
		al.flows(t, "voice")
		al.Disconnect()
		bo.hears(t, "al leaves")
	})
}

func TestSDKReconnects(t *testing.T) {
	for name, scenario := range map[string]lksdk.SimulateScenario{
		"the signalling breaks": lksdk.SimulateSignalReconnect,
		"the server migrates":   lksdk.SimulateMigration,
		"the server ends":       lksdk.SimulateNodeFailure,
		"a full reconnect":      lksdk.SimulateLeaveRequestFullReconnect,
	} {
		t.Run(name, func(t *testing.T) {
			inEachMode(t, func(t *testing.T, options ...lksdk.ConnectOption) {
				al, bo := enter(t, "al", options...), enter(t, "bo", options...)
				al.sends(t, "microphone", webrtc.MimeTypeOpus)
				bo.sends(t, "voice", webrtc.MimeTypeOpus)
				bo.flows(t, "microphone")
				al.flows(t, "voice")
				sid := al.LocalParticipant.SID()
				al.forget()
				al.Simulate(scenario)
				al.hears(t, "reconnected")
				resumes := scenario == lksdk.SimulateSignalReconnect || scenario == lksdk.SimulateMigration
				if isSame := al.LocalParticipant.SID() == sid; isSame != resumes {
					t.Errorf("the session goes on: %v", isSame)
				}
				al.flows(t, "voice")
				bo.flows(t, "microphone")
				if err := al.LocalParticipant.PublishDataPacket(lksdk.UserData([]byte("again")), lksdk.WithDataPublishReliable(true)); err != nil {
					t.Fatal(err)
				}
				bo.hears(t, "data again  of al")
			})
		})
	}
}

func TestSDKData(t *testing.T) {
	inEachMode(t, func(t *testing.T, options ...lksdk.ConnectOption) {
		al, bo, cy := enter(t, "al", options...), enter(t, "bo", options...), enter(t, "cy", options...)
		var texts, files atomic.Int64
		register := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		register(bo.RegisterTextStreamHandler("chat", func(reader *lksdk.TextStreamReader, from string) {
			go func() { texts.Store(int64(len(reader.ReadAll()))) }()
		}))
		register(bo.RegisterByteStreamHandler("file", func(reader *lksdk.ByteStreamReader, from string) {
			go func() { files.Store(int64(len(reader.ReadAll()))) }()
		}))
		register(bo.RegisterRpcMethod("greet", func(call lksdk.RpcInvocationData) (string, error) {
			return "hello " + call.CallerIdentity + ", " + call.Payload, nil
		}))
		send := func(text string, options ...lksdk.DataPublishOption) {
			packet := lksdk.UserData([]byte(text))
			register(al.LocalParticipant.PublishDataPacket(packet, append(options, lksdk.WithDataPublishReliable(true))...))
		}
		send("to bo", lksdk.WithDataPublishDestination([]string{"bo"}), lksdk.WithDataPublishTopic("t"))
		send("to all")
		bo.hears(t, "data to bo t of al")
		bo.hears(t, "data to all  of al")
		cy.hears(t, "data to all  of al")
		if cy.got("data to bo t of al") {
			t.Error("cy hears what is for bo")
		}
		al.LocalParticipant.SendText(strings.Repeat("x", 100_000), lksdk.StreamTextOptions{Topic: "chat", DestinationIdentities: []string{"bo"}})
		eventually(t, "a text", func() bool { return texts.Load() == 100_000 })
		file := filepath.Join(t.TempDir(), "file")
		register(os.WriteFile(file, bytes.Repeat([]byte{1, 2}, 100_000), 0o600))
		if _, err := al.LocalParticipant.SendFile(file, lksdk.StreamBytesOptions{Topic: "file"}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a file", func() bool { return files.Load() == 200_000 })
		answer, err := al.LocalParticipant.PerformRpc(lksdk.PerformRpcParams{DestinationIdentity: "bo", Method: "greet", Payload: "you"})
		if err != nil || answer == nil || *answer != "hello al, you" {
			t.Errorf("a call is answered by %v, %v", answer, err)
		}
		if _, err := al.LocalParticipant.PerformRpc(lksdk.PerformRpcParams{DestinationIdentity: "cy", Method: "none"}); err == nil {
			t.Error("a method that is not there answers")
		}
	})
}

func TestSDKModeration(t *testing.T) {
	t.Parallel()
	al, bo := enter(t, "al"), enter(t, "bo")
	rooms := lksdk.NewRoomServiceClient(httpURL(), key, secret)
	microphone := al.sends(t, "microphone", webrtc.MimeTypeOpus)
	bo.hears(t, "microphone of al")
	_, err := rooms.MutePublishedTrack(t.Context(), &livekit.MuteRoomTrackRequest{
		Room: roomOf(t), Identity: "al", TrackSid: microphone.SID(), Muted: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	al.hears(t, "microphone is muted")
	bo.hears(t, "microphone is muted")
	_, err = rooms.UpdateParticipant(t.Context(), &livekit.UpdateParticipantRequest{Room: roomOf(t), Identity: "al", Metadata: "m"})
	if err != nil {
		t.Fatal(err)
	}
	bo.hears(t, "metadata m of al")
	_, err = rooms.SendData(t.Context(), &livekit.SendDataRequest{Room: roomOf(t), Data: []byte("hello"), DestinationIdentities: []string{"bo"}})
	if err != nil {
		t.Fatal(err)
	}
	bo.hears(t, "data hello  of ")
	if _, err := rooms.RemoveParticipant(t.Context(), &livekit.RoomParticipantIdentity{Room: roomOf(t), Identity: "al"}); err != nil {
		t.Fatal(err)
	}
	al.hears(t, "disconnected: "+string(lksdk.ParticipantRemoved))
	bo.hears(t, "al leaves")
	if _, err := rooms.DeleteRoom(t.Context(), &livekit.DeleteRoomRequest{Room: roomOf(t)}); err != nil {
		t.Fatal(err)
	}
	// The SDK has no name for ROOM_DELETED.
	bo.hears(t, "disconnected: "+string(lksdk.OtherReason))
}

func TestSDKSecondSessionEndsTheFirst(t *testing.T) {
	t.Parallel()
	al := enter(t, "al")
	enter(t, "al")
	al.hears(t, "disconnected: "+string(lksdk.DuplicateIdentity))
}
