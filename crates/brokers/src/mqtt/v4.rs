//! Packets of MQTT 3.1.1.

use rumqttc::mqttbytes::v4::{
    self, ConnectReturnCode, LastWill, Packet, PubAck, PubComp, PubRec, PubRel, SubscribeFilter,
    SubscribeReasonCode,
};

use super::frame::{Connect, Connected, Frame, Outgoing, Publish};
use crate::Reply;

impl From<Packet> for Frame {
    fn from(packet: Packet) -> Self {
        match packet {
            Packet::ConnAck(ack) => match ack.code {
                ConnectReturnCode::Success => Frame::Connected(Connected {
                    session_present: ack.session_present,
                    receive_maximum: u16::MAX,
                    max_packet: None,
                }),
                code => Frame::Refused {
                    code: code as u8,
                    reason: format!("the broker refuses: {code:?}"),
                },
            },
            Packet::Publish(publish) => Frame::Publish(Publish {
                id: publish.pkid,
                is_again: publish.dup,
                message: Outgoing {
                    topic: publish.topic,
                    payload: publish.payload,
                    qos: publish.qos,
                    retain: publish.retain,
                    correlation: None,
                    user_properties: Vec::new(),
                },
                reply: Reply::default(),
            }),
            Packet::PubAck(ack) => Frame::Acknowledged {
                id: ack.pkid,
                refusal: None,
            },
            Packet::PubRec(ack) => Frame::Received(ack.pkid),
            Packet::PubRel(ack) => Frame::Released(ack.pkid),
            Packet::PubComp(ack) => Frame::Completed(ack.pkid),
            Packet::SubAck(ack) => Frame::Subscribed {
                refused: ack.return_codes.contains(&SubscribeReasonCode::Failure),
            },
            Packet::PingResp => Frame::Pong,
            Packet::Disconnect => Frame::Ended("the broker ends the connection".to_owned()),
            Packet::Connect(_)
            | Packet::Subscribe(_)
            | Packet::Unsubscribe(_)
            | Packet::UnsubAck(_)
            | Packet::PingReq => Frame::Unexpected,
        }
    }
}

/// Returns the packet, or `None` for a frame that only a broker sends.
pub(super) fn packet(frame: Frame) -> Option<Packet> {
    Some(match frame {
        Frame::Connect(connect) => Packet::Connect(start(*connect)),
        Frame::Publish(publish) => {
            let Outgoing {
                topic,
                payload,
                qos,
                retain,
                ..
            } = publish.message;
            let mut packet = v4::Publish::from_bytes(topic, qos, payload);
            packet.retain = retain;
            packet.dup = publish.is_again;
            packet.pkid = publish.id;
            Packet::Publish(packet)
        }
        Frame::Acknowledged { id, .. } => Packet::PubAck(PubAck::new(id)),
        Frame::Received(id) => Packet::PubRec(PubRec::new(id)),
        Frame::Released(id) => Packet::PubRel(PubRel::new(id)),
        Frame::Completed(id) => Packet::PubComp(PubComp::new(id)),
        Frame::Subscribe { id, filters } => {
            let filter = |(path, qos)| SubscribeFilter { path, qos };
            let mut packet = v4::Subscribe::new_many(filters.into_iter().map(filter));
            packet.pkid = id;
            Packet::Subscribe(packet)
        }
        Frame::Ping => Packet::PingReq,
        Frame::Disconnect => Packet::Disconnect,
        Frame::Connected(_)
        | Frame::Refused { .. }
        | Frame::Subscribed { .. }
        | Frame::Pong
        | Frame::Ended(_)
        | Frame::Unexpected => return None,
    })
}

fn start(connect: Connect) -> v4::Connect {
    let mut packet = v4::Connect::new(connect.client_id);
    packet.keep_alive = connect.keep_alive;
    packet.clean_session = connect.clean;
    packet.last_will = connect.will.map(|will| LastWill {
        topic: will.topic,
        message: will.payload,
        qos: will.qos,
        retain: will.retain,
    });
    if let Some((username, password)) = connect.login {
        packet.set_login(username, password);
    }
    packet
}
