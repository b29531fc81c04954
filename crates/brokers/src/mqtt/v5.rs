//! Packets of MQTT 5.

use rumqttc::QoS;
use rumqttc::v5::mqttbytes::QoS as QoS5;
use rumqttc::v5::mqttbytes::v5::{
    self, ConnAck, ConnectProperties, ConnectReturnCode, DisconnectReasonCode, Filter, LastWill,
    Login, Packet, PingReq, PubAck, PubAckReason, PubComp, PubRec, PubRecReason, PubRel,
    PublishProperties, SubscribeReasonCode,
};

use super::frame::{Connect, Connected, Frame, Outgoing, Publish};
use crate::Reply;

/// The time for which a broker keeps our session while we are away, in s.
const SESSION_EXPIRY: u32 = 3_600;

impl From<Packet> for Frame {
    fn from(packet: Packet) -> Self {
        match packet {
            Packet::ConnAck(ack) => started(ack),
            Packet::Publish(publish) => arrived(publish),
            Packet::PubAck(ack) => {
                let received = [PubAckReason::Success, PubAckReason::NoMatchingSubscribers]
                    .contains(&ack.reason);
                Frame::Acknowledged {
                    id: ack.pkid,
                    refusal: (!received).then(|| format!("{:?}", ack.reason)),
                }
            }
            Packet::PubRec(ack) => match ack.reason {
                PubRecReason::Success | PubRecReason::NoMatchingSubscribers => {
                    Frame::Received(ack.pkid)
                }
                reason => Frame::Acknowledged {
                    id: ack.pkid,
                    refusal: Some(format!("{reason:?}")),
                },
            },
            Packet::PubRel(ack) => Frame::Released(ack.pkid),
            Packet::PubComp(ack) => Frame::Completed(ack.pkid),
            Packet::SubAck(ack) => {
                let taken =
                    |code: &SubscribeReasonCode| matches!(code, SubscribeReasonCode::Success(_));
                Frame::Subscribed {
                    refused: !ack.return_codes.iter().all(taken),
                }
            }
            Packet::PingResp(_) => Frame::Pong,
            Packet::Disconnect(end) => Frame::Ended(format!("{:?}", end.reason_code)),
            Packet::Auth(_)
            | Packet::Connect(..)
            | Packet::Subscribe(_)
            | Packet::Unsubscribe(_)
            | Packet::UnsubAck(_)
            | Packet::PingReq(_) => Frame::Unexpected,
        }
    }
}

fn started(ack: ConnAck) -> Frame {
    if ack.code != ConnectReturnCode::Success {
        return Frame::Refused {
            code: ack.code as u8,
            reason: format!("the broker refuses: {:?}", ack.code),
        };
    }
    let properties = ack.properties.as_ref();
    let receive_maximum = properties.and_then(|properties| properties.receive_max);
    Frame::Connected(Connected {
        session_present: ack.session_present,
        receive_maximum: receive_maximum.unwrap_or(u16::MAX).max(1),
        max_packet: properties.and_then(|properties| properties.max_packet_size),
    })
}

fn arrived(publish: v5::Publish) -> Frame {
    let properties = publish.properties.unwrap_or_default();
    Frame::Publish(Publish {
        id: publish.pkid,
        is_again: publish.dup,
        message: Outgoing {
            topic: String::from_utf8_lossy(&publish.topic).into_owned(),
            payload: publish.payload,
            qos: older(publish.qos),
            retain: publish.retain,
            correlation: None,
            user_properties: properties.user_properties,
        },
        reply: Reply {
            to: properties.response_topic,
            correlation: properties.correlation_data,
        },
    })
}

/// Returns the packet, or `None` for a frame that only a broker sends.
pub(super) fn packet(frame: Frame) -> Option<Packet> {
    Some(match frame {
        Frame::Connect(connect) => start(*connect),
        Frame::Publish(publish) => {
            let message = publish.message;
            let properties = PublishProperties {
                correlation_data: message.correlation,
                user_properties: message.user_properties,
                ..PublishProperties::default()
            };
            Packet::Publish(v5::Publish {
                dup: publish.is_again,
                qos: newer(message.qos),
                retain: message.retain,
                topic: message.topic.into(),
                pkid: publish.id,
                payload: message.payload,
                properties: Some(properties),
            })
        }
        Frame::Acknowledged { id, .. } => Packet::PubAck(PubAck::new(id, None)),
        Frame::Received(id) => Packet::PubRec(PubRec::new(id, None)),
        Frame::Released(id) => Packet::PubRel(PubRel::new(id, None)),
        Frame::Completed(id) => Packet::PubComp(PubComp::new(id, None)),
        Frame::Subscribe { id, filters } => {
            let filter = |(path, qos)| Filter::new::<String>(path, newer(qos));
            Packet::Subscribe(v5::Subscribe {
                pkid: id,
                filters: filters.into_iter().map(filter).collect(),
                properties: None,
            })
        }
        Frame::Ping => Packet::PingReq(PingReq),
        Frame::Disconnect => {
            let reason = DisconnectReasonCode::NormalDisconnection;
            Packet::Disconnect(v5::Disconnect::new(reason))
        }
        Frame::Connected(_)
        | Frame::Refused { .. }
        | Frame::Subscribed { .. }
        | Frame::Pong
        | Frame::Ended(_)
        | Frame::Unexpected => return None,
    })
}

fn start(connect: Connect) -> Packet {
    let properties = ConnectProperties {
        session_expiry_interval: (!connect.clean).then_some(SESSION_EXPIRY),
        ..ConnectProperties::new()
    };
    let will = connect.will.map(|will| LastWill {
        topic: will.topic.into(),
        message: will.payload,
        qos: newer(will.qos),
        retain: will.retain,
        properties: None,
    });
    let login = connect
        .login
        .map(|(username, password)| Login { username, password });
    let packet = v5::Connect {
        keep_alive: connect.keep_alive,
        client_id: connect.client_id,
        clean_start: connect.clean,
        properties: Some(properties),
    };
    Packet::Connect(packet, will, login)
}

fn older(qos: QoS5) -> QoS {
    match qos {
        QoS5::AtMostOnce => QoS::AtMostOnce,
        QoS5::AtLeastOnce => QoS::AtLeastOnce,
        QoS5::ExactlyOnce => QoS::ExactlyOnce,
    }
}

fn newer(qos: QoS) -> QoS5 {
    match qos {
        QoS::AtMostOnce => QoS5::AtMostOnce,
        QoS::AtLeastOnce => QoS5::AtLeastOnce,
        QoS::ExactlyOnce => QoS5::ExactlyOnce,
    }
}
