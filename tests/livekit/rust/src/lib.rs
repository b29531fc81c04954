//! LiveKit's server API crate against the server that `LIVEKIT_URL` names, with the key of `tests/livekit/tokens.mjs`.

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::env;

    use livekit_api::services::agent_dispatch::AgentDispatchClient;
    use livekit_api::services::room::{
        CreateRoomOptions, RoomClient, SendDataOptions, UpdateParticipantOptions,
    };
    use livekit_api::services::{ServerError, ServerErrorCode, ServiceError};
    use livekit_protocol::CreateAgentDispatchRequest;

    const KEY: &str = "devkey";
    const SECRET: &str = "secretsecretsecretsecretsecretsecret";

    fn url() -> String {
        env::var("LIVEKIT_URL").expect("LIVEKIT_URL names the server")
    }

    fn rooms() -> RoomClient {
        RoomClient::with_api_key(&url(), KEY, SECRET)
    }

    /// Returns the code of an error of the server.
    fn code<T: std::fmt::Debug>(result: Result<T, ServiceError>) -> String {
        match result {
            Err(ServiceError::Twirp(ServerError::Twirp(error))) => error.code,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn rooms_are_made_listed_changed_and_deleted() {
        let options = CreateRoomOptions {
            empty_timeout: 60,
            max_participants: 4,
            metadata: "one".to_owned(),
            ..CreateRoomOptions::default()
        };
        let made = rooms().create_room("rust", options).await.unwrap();
        assert!(made.sid.starts_with("RM_"));
        assert_eq!((made.empty_timeout, made.max_participants), (60, 4));
        let names = vec!["rust".to_owned(), "nothing".to_owned()];
        let listed = rooms().list_rooms(names).await.unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].sid, made.sid);
        let changed = rooms().update_room_metadata("rust", "two").await.unwrap();
        assert_eq!(changed.metadata, "two");
        assert!(rooms().list_participants("rust").await.unwrap().is_empty());
        let data = rooms().send_data("rust", vec![1], SendDataOptions::default());
        data.await.unwrap();
        rooms().delete_room("rust").await.unwrap();
        assert_eq!(
            code(rooms().delete_room("rust").await),
            ServerErrorCode::NOT_FOUND
        );
    }

    #[tokio::test]
    async fn errors_have_their_codes() {
        let nobody = rooms().get_participant("nothing", "nobody").await;
        assert_eq!(code(nobody), ServerErrorCode::NOT_FOUND);
        let options = UpdateParticipantOptions {
            attributes: HashMap::from([("a".to_owned(), "x".repeat(70_000))]),
            ..UpdateParticipantOptions::default()
        };
        let long = rooms()
            .update_participant("nothing", "nobody", options)
            .await;
        assert_eq!(code(long), ServerErrorCode::INVALID_ARGUMENT);
        let unmuted = rooms()
            .mute_published_track("nothing", "nobody", "TR_nothing", false)
            .await;
        assert!(unmuted.is_err());
        let wrong = RoomClient::with_api_key(&url(), KEY, "another secret of thirty-two bytes");
        assert!(wrong.list_rooms(Vec::new()).await.is_err());
    }

    #[tokio::test]
    async fn agents_are_dispatched() {
        let agents = AgentDispatchClient::with_api_key(&url(), KEY, SECRET);
        let request = CreateAgentDispatchRequest {
            room: "rust agents".to_owned(),
            agent_name: "bot".to_owned(),
            metadata: "m".to_owned(),
            ..CreateAgentDispatchRequest::default()
        };
        let made = agents.create_dispatch(request).await.unwrap();
        let listed = agents.list_dispatch("rust agents").await.unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].id, made.id);
        agents
            .delete_dispatch(made.id, "rust agents")
            .await
            .unwrap();
        assert!(
            agents
                .list_dispatch("rust agents")
                .await
                .unwrap()
                .is_empty()
        );
        rooms().delete_room("rust agents").await.unwrap();
    }
}
