package livekit

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livekit/livekit-server/test/client"
	"github.com/livekit/protocol/auth"
	"github.com/livekit/protocol/livekit"
	"github.com/pion/webrtc/v4"
	"github.com/twitchtv/twirp"
)

// The test client of livekit-server, by all ways of signalling.

// A way is a path of the signalling with the number of PeerConnections.
type way struct {
	name, path  string
	joinRequest bool
}

var ways = []way{
	{"two PeerConnections", "/rtc", false},
	{"one by rtc", "/rtc", true},
	{"one by v1", "/rtc/v1", true},
}

// onEach runs a test in a room for each way, all at once.
func onEach(t *testing.T, test func(t *testing.T, room clients)) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			test(t, clients{way, roomOf(t)})
		})
	}
}

// Clients join a room by a way.
type clients struct {
	way  way
	room string
}

// open opens the signalling of a client, which connects meanwhile.
func (it clients) open(t *testing.T, token string, options client.Options) *client.RTCClient {
	t.Helper()
	options.RTCServicePath, options.UseJoinRequestQueryParam = it.way.path, it.way.joinRequest
	socket, err := client.NewWebSocketConn(url, token, &options)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := client.NewRTCClient(socket, it.way.joinRequest, &options)
	if err != nil {
		t.Fatal(err)
	}
	go opened.Run()
	t.Cleanup(opened.Stop)
	return opened
}

// connected waits until the media of clients can flow.
func connected(t *testing.T, clients ...*client.RTCClient) {
	t.Helper()
	for _, one := range clients {
		if err := one.WaitUntilConnected(20 * time.Second); err != nil {
			t.Fatal(err)
		}
	}
}

// join lets somebody join who takes all tracks.
func (it clients) join(t *testing.T, identity string) *client.RTCClient {
	t.Helper()
	return it.joinAs(t, tokenOf(t, it.room, identity, nil), client.Options{AutoSubscribe: true})
}

func (it clients) joinAs(t *testing.T, token string, options client.Options) *client.RTCClient {
	t.Helper()
	joined := it.open(t, token, options)
	connected(t, joined)
	return joined
}

// publish publishes a microphone and a camera.
func publish(t *testing.T, publisher *client.RTCClient) {
	t.Helper()
	track(t, publisher, "audio/opus", "audio")
	track(t, publisher, "video/vp8", "video")
}

func track(t *testing.T, publisher *client.RTCClient, mime, id string) {
	t.Helper()
	writer, err := publisher.AddStaticTrack(mime, id, id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(writer.Stop)
}

// received returns the media types that one client receives of another, in order.
func received(subscriber, publisher *client.RTCClient) string {
	var types []string
	for _, track := range subscriber.SubscribedTracks()[publisher.ID()] {
		types = append(types, strings.ToLower(track.Codec().MimeType))
	}
	slices.Sort(types)
	return strings.Join(types, " ")
}

func receives(t *testing.T, subscriber, publisher *client.RTCClient, types string) {
	t.Helper()
	eventually(t, "receives "+types, func() bool { return received(subscriber, publisher) == types })
}

// rooms returns a client of the RoomService that may do everything in a room.
func (it clients) rooms(t *testing.T) (context.Context, livekit.RoomService) {
	t.Helper()
	token := tokenOf(t, it.room, "", func(_ *auth.AccessToken, grant *auth.VideoGrant) {
		*grant = auth.VideoGrant{RoomAdmin: true, RoomCreate: true, RoomList: true, Room: it.room}
	})
	header := make(http.Header)
	client.SetAuthorizationToken(header, token)
	ctx, err := twirp.WithHTTPRequestHeaders(context.Background(), header)
	if err != nil {
		t.Fatal(err)
	}
	return ctx, livekit.NewRoomServiceProtobufClient(httpURL(), http.DefaultClient)
}

func TestClientsSeeEachOther(t *testing.T) {
	onEach(t, func(t *testing.T, room clients) {
		al, bo := room.join(t, "al"), room.join(t, "bo")
		eventually(t, "al sees bo", func() bool { return al.GetRemoteParticipant(bo.ID()) != nil })
		eventually(t, "bo sees al", func() bool { return bo.GetRemoteParticipant(al.ID()) != nil })
		bo.Stop()
		eventually(t, "bo is gone", func() bool { return len(al.RemoteParticipants()) == 0 })
	})
}

func TestOnePublishesForAllOthers(t *testing.T) {
	onEach(t, func(t *testing.T, room clients) {
		al, bo := room.join(t, "al"), room.join(t, "bo")
		publish(t, al)
		receives(t, bo, al, "audio/opus video/vp8")
		eventually(t, "media flows", func() bool { return bo.BytesReceived() > 1_000 })
		remote := bo.GetRemoteParticipant(al.ID())
		for _, info := range remote.Tracks {
			if !strings.HasPrefix(info.Sid, "TR_") || info.MimeType == "" {
				t.Errorf("a track is %v", info)
			}
		}
		cy := room.join(t, "cy")
		receives(t, cy, al, "audio/opus video/vp8")
		for _, track := range cy.SubscribedTracks()[al.ID()] {
			if !strings.HasPrefix(track.ID(), "TR_") || !strings.HasPrefix(track.StreamID(), string(al.ID())) {
				t.Errorf("a track is called %s of %s", track.ID(), track.StreamID())
			}
		}
	})
}

func TestPublishersLeaveAndComeBack(t *testing.T) {
	onEach(t, func(t *testing.T, room clients) {
		al, bo, cy := room.join(t, "al"), room.join(t, "bo"), room.join(t, "cy")
		publish(t, al)
		publish(t, bo)
		receives(t, cy, al, "audio/opus video/vp8")
		receives(t, cy, bo, "audio/opus video/vp8")
		bo.Stop()
		receives(t, cy, bo, "")
		receives(t, al, bo, "")
		bo = room.join(t, "bo")
		publish(t, bo)
		receives(t, cy, bo, "audio/opus video/vp8")
		receives(t, al, bo, "audio/opus video/vp8")
		receives(t, bo, al, "audio/opus video/vp8")
	})
}

func TestASecondConnectionPublishesOnly(t *testing.T) {
	// The join request has no such parameter.
	t.Parallel()
	room := clients{ways[0], roomOf(t)}
	token := tokenOf(t, room.room, "al", func(_ *auth.AccessToken, grant *auth.VideoGrant) {
		grant.SetCanPublish(true)
		grant.SetCanSubscribe(true)
	})
	al := room.joinAs(t, token, client.Options{AutoSubscribe: true})
	bo := room.join(t, "bo")
	publish(t, al)
	publish(t, bo)
	second := room.joinAs(t, token, client.Options{AutoSubscribe: true, Publish: "screen"})
	track(t, second, "video/vp8", "screen")
	receives(t, bo, second, "video/vp8")
	receives(t, bo, al, "audio/opus video/vp8")
	if identity := bo.GetRemoteParticipant(second.ID()).Identity; identity != "al#screen" {
		t.Errorf("the second connection is %s", identity)
	}
	if received(second, bo) != "" {
		t.Error("the second connection subscribes")
	}
}

func TestNothingIsReceivedUnasked(t *testing.T) {
	onEach(t, func(t *testing.T, room clients) {
		al := room.join(t, "al")
		bo := room.joinAs(t, tokenOf(t, room.room, "bo", nil), client.Options{})
		publish(t, al)
		eventually(t, "bo knows the tracks", func() bool {
			remote := bo.GetRemoteParticipant(al.ID())
			return remote != nil && len(remote.Tracks) == 2
		})
		// A third one receives them, so that bo would have, too.
		receives(t, room.join(t, "cy"), al, "audio/opus video/vp8")
		if types := received(bo, al); types != "" {
			t.Fatalf("bo receives %s", types)
		}
		var sid string
		for _, info := range bo.GetRemoteParticipant(al.ID()).Tracks {
			if info.Type == livekit.TrackType_VIDEO {
				sid = info.Sid
			}
		}
		subscription := &livekit.UpdateSubscription{TrackSids: []string{sid}, Subscribe: true}
		if err := bo.SendRequest(&livekit.SignalRequest{Message: &livekit.SignalRequest_Subscription{Subscription: subscription}}); err != nil {
			t.Fatal(err)
		}
		receives(t, bo, al, "video/vp8")
	})
}

// h264 is what browsers offer.
var h264 = webrtc.RTPCodecCapability{
	MimeType:    "video/h264",
	ClockRate:   90_000,
	SDPFmtpLine: "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f",
}

// ownAnswers skips tests of clients that offer a codec later only if the first answer named it. Ours name one codec for each m-line.
func ownAnswers(t *testing.T) {
	t.Helper()
	if isOurs {
		t.Skip("an answer names one codec (docs/livekit.md)")
	}
}

func TestAnotherCodecIsPublishedLater(t *testing.T) {
	ownAnswers(t)
	onEach(t, func(t *testing.T, room clients) {
		al, bo := room.join(t, "al"), room.join(t, "bo")
		publish(t, al)
		receives(t, bo, al, "audio/opus video/vp8")
		writer, err := al.AddStaticTrackWithCodec(h264, "screen", "screen")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(writer.Stop)
		receives(t, bo, al, "audio/opus video/h264 video/vp8")
	})
}

func TestWhoLacksACodecIsToldSo(t *testing.T) {
	ownAnswers(t)
	onEach(t, func(t *testing.T, room clients) {
		al := room.join(t, "al")
		without := client.Options{AutoSubscribe: true, DisabledCodecs: []webrtc.RTPCodecCapability{{MimeType: "video/H264"}}}
		bo := room.joinAs(t, tokenOf(t, room.room, "bo", nil), without)
		publish(t, al)
		receives(t, bo, al, "audio/opus video/vp8")
		if answer := bo.GetSubscriptionResponseAndClear(); answer != nil {
			t.Fatalf("too early: %v", answer)
		}
		writer, err := al.AddStaticTrackWithCodec(h264, "screen", "screen")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(writer.Stop)
		var answer *livekit.SubscriptionResponse
		eventually(t, "bo is told", func() bool {
			answer = bo.GetSubscriptionResponseAndClear()
			return answer != nil
		})
		if answer.Err != livekit.SubscriptionError_SE_CODEC_UNSUPPORTED {
			t.Errorf("bo is told %v", answer)
		}
		// What comes later is not disturbed.
		track(t, al, "video/vp8", "another")
		receives(t, bo, al, "audio/opus video/vp8 video/vp8")
		if answer := bo.GetSubscriptionResponseAndClear(); answer != nil {
			t.Errorf("bo is told once more: %v", answer)
		}
	})
}

func TestPermissionsChangeMeanwhile(t *testing.T) {
	onEach(t, func(t *testing.T, room clients) {
		al := room.join(t, "al")
		token := tokenOf(t, room.room, "bo", func(_ *auth.AccessToken, grant *auth.VideoGrant) { grant.SetCanSubscribe(false) })
		bo := room.joinAs(t, token, client.Options{AutoSubscribe: true})
		publish(t, al)
		eventually(t, "bo knows the tracks", func() bool {
			remote := bo.GetRemoteParticipant(al.ID())
			return remote != nil && len(remote.Tracks) == 2
		})
		if types := received(bo, al); types != "" {
			t.Fatalf("bo receives %s", types)
		}
		ctx, rooms := room.rooms(t)
		permit := func(identity string, publish, subscribe bool) {
			permission := &livekit.ParticipantPermission{CanPublish: publish, CanSubscribe: subscribe}
			request := &livekit.UpdateParticipantRequest{Room: room.room, Identity: identity, Permission: permission}
			if _, err := rooms.UpdateParticipant(ctx, request); err != nil {
				t.Fatal(err)
			}
		}
		permit("bo", true, true)
		receives(t, bo, al, "audio/opus video/vp8")
		permit("bo", true, false)
		receives(t, bo, al, "")
		permit("bo", true, true)
		receives(t, bo, al, "audio/opus video/vp8")
		permit("al", false, true)
		receives(t, bo, al, "")
		eventually(t, "al ends its tracks", func() bool { return len(al.GetPublishedTrackIDs()) == 0 })
	})
}

func TestNamesAndAttributes(t *testing.T) {
	onEach(t, func(t *testing.T, room clients) {
		token := tokenOf(t, room.room, "al", func(token *auth.AccessToken, grant *auth.VideoGrant) {
			grant.SetCanUpdateOwnMetadata(true)
			token.SetAttributes(map[string]string{"a": "0", "b": "1"})
		})
		al := room.joinAs(t, token, client.Options{AutoSubscribe: true, Attributes: map[string]string{"b": "2", "c": "3"}})
		bo := room.join(t, "bo")
		is := func(what, name string, attributes map[string]string) {
			t.Helper()
			eventually(t, what, func() bool {
				remote := bo.GetRemoteParticipant(al.ID())
				if remote == nil || remote.Name != name || len(remote.Attributes) != len(attributes) {
					return false
				}
				for key, value := range attributes {
					if remote.Attributes[key] != value {
						return false
					}
				}
				return true
			})
		}
		is("those of the join replace those of the token", "AL", map[string]string{"a": "0", "b": "2", "c": "3"})
		if err := al.SetAttributes(map[string]string{"a": "", "d": "4"}); err != nil {
			t.Fatal(err)
		}
		is("the client changes its own", "AL", map[string]string{"b": "2", "c": "3", "d": "4"})
		ctx, rooms := room.rooms(t)
		request := &livekit.UpdateParticipantRequest{Room: room.room, Identity: "al", Name: "Alice", Attributes: map[string]string{"b": "", "c": "", "d": "5"}}
		if _, err := rooms.UpdateParticipant(ctx, request); err != nil {
			t.Fatal(err)
		}
		is("a moderator changes them", "Alice", map[string]string{"d": "5"})
	})
}

func TestDataGoesToTheOthers(t *testing.T) {
	onEach(t, func(t *testing.T, room clients) {
		for _, kind := range []livekit.DataPacket_Kind{livekit.DataPacket_RELIABLE, livekit.DataPacket_LOSSY} {
			al, bo := room.join(t, "al "+kind.String()), room.join(t, "bo "+kind.String())
			var got atomic.Value
			bo.OnDataReceived = func(data []byte, sid string) { got.Store(string(data) + " " + sid) }
			eventually(t, "bo hears al", func() bool {
				// What is not reliable may be lost, above all before both channels are open.
				if err := al.PublishData([]byte("hello"), kind); err != nil {
					t.Fatal(err)
				}
				return got.Load() == "hello "+string(al.ID())
			})
		}
	})
}

func TestPings(t *testing.T) {
	onEach(t, func(t *testing.T, room clients) {
		al := room.join(t, "al")
		if err := al.SendPing(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a pong", func() bool { return al.PongReceivedAt() != 0 })
	})
}

func TestARenewedTokenIsValid(t *testing.T) {
	onEach(t, func(t *testing.T, room clients) {
		token := tokenOf(t, room.room, "al", func(token *auth.AccessToken, _ *auth.VideoGrant) {
			token.SetValidFor(5 * time.Minute).SetMetadata("m")
		})
		al := room.joinAs(t, token, client.Options{AutoSubscribe: true})
		eventually(t, "a token", func() bool { return al.RefreshToken() != "" })
		renewed := al.RefreshToken()
		al.Stop()
		bo := room.join(t, "bo")
		al = room.joinAs(t, renewed, client.Options{AutoSubscribe: true})
		eventually(t, "al is the same", func() bool {
			remote := bo.GetRemoteParticipant(al.ID())
			return remote != nil && remote.Identity == "al" && remote.Metadata == "m" && remote.Name == "AL"
		})
	})
}

func TestARoomEndsAndBeginsAnew(t *testing.T) {
	onEach(t, func(t *testing.T, room clients) {
		al := room.join(t, "al")
		publish(t, al)
		ctx, rooms := room.rooms(t)
		if _, err := rooms.DeleteRoom(ctx, &livekit.DeleteRoomRequest{Room: room.room}); err != nil {
			t.Fatal(err)
		}
		bo, cy := room.join(t, "bo"), room.join(t, "cy")
		publish(t, bo)
		receives(t, cy, bo, "audio/opus video/vp8")
		eventually(t, "al is not there", func() bool { return len(cy.RemoteParticipants()) == 1 })
	})
}

func TestWhoGoesBeforeMediaFlowsIsGoneAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, room clients) {
		al := room.join(t, "al")
		bo := room.open(t, tokenOf(t, room.room, "bo", nil), client.Options{
			SignalRequestInterceptor: func(message *livekit.SignalRequest, next client.SignalRequestHandler) error {
				switch message.Message.(type) {
				case *livekit.SignalRequest_Offer, *livekit.SignalRequest_Answer, *livekit.SignalRequest_Leave:
					return nil
				}
				return next(message)
			},
			SignalResponseInterceptor: func(message *livekit.SignalResponse, next client.SignalResponseHandler) error {
				switch message.Message.(type) {
				case *livekit.SignalResponse_Offer, *livekit.SignalResponse_Answer:
					return nil
				}
				return next(message)
			},
		})
		eventually(t, "al sees bo", func() bool { return len(al.RemoteParticipants()) == 1 })
		bo.Stop()
		eventually(t, "bo is gone", func() bool { return len(al.RemoteParticipants()) == 0 })
	})
}

func TestMediaGoesByTheRelay(t *testing.T) {
	if !isOurs {
		t.Skip("the configuration of another server")
	}
	onEach(t, func(t *testing.T, room clients) {
		al := room.joinAs(t, tokenOf(t, room.room, "al", nil), client.Options{AutoSubscribe: true, ForceRelay: true})
		if !al.IsLocalCandidateRelaySelected() {
			t.Error("the media goes past the relay")
		}
		bo := room.join(t, "bo")
		publish(t, bo)
		receives(t, al, bo, "audio/opus video/vp8")
		eventually(t, "media flows", func() bool { return al.BytesReceived() > 1_000 })
	})
}
