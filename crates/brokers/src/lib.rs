//! Connections to message brokers: MQTT, RabbitMQ and NATS.
#![forbid(unsafe_code)]
