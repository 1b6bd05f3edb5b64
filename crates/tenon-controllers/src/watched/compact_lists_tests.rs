//! Are lists asked for in the compact format, and as JSON where that cannot be read?

use std::sync::Mutex;

use kube::api::{Api, ListParams, WatchParams};
use tenon_api::kube_objects::WirePod;

use super::*;

/// How a server answers one who accepts the compact format.
#[derive(Debug, Clone)]
enum Habit {
    /// With this status and message.
    Says(u16, Vec<u8>),
    /// In JSON.
    AnswersJson,
    /// With this status and a few words.
    Refuses(u16),
}

/// What was asked, and which formats were accepted.
type Asked = Arc<Mutex<Vec<(String, String)>>>;

/// A client of a server of this habit. What it answers as JSON has one pod of the name `json`.
fn server(habit: Habit) -> (Client, Asked) {
    let asked = Asked::default();
    let heard = asked.clone();
    let answer = move |request: Request<Body>| {
        let accepted = request.headers().get(ACCEPT).map_or("", |formats| formats.to_str().unwrap()).to_owned();
        let is_compact = accepted.contains("protobuf");
        heard.lock().unwrap().push((request.uri().to_string(), accepted));
        let json = r#"{"metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"json"}}]}"#;
        let (status, format, body) = match &habit {
            Habit::Says(status, message) if is_compact => (*status, protobuf::MEDIA_TYPE, message.clone()),
            Habit::Refuses(status) if is_compact => (*status, "text/plain", b"no such format".to_vec()),
            _ => (200, "application/json", json.into()),
        };
        let reply = Response::builder().status(status).header(CONTENT_TYPE, format).header(CONTENT_LENGTH, body.len());
        let reply = reply.body(Body::from(body)).unwrap();
        async { Ok::<_, kube::Error>(reply) }
    };
    (with_compact_lists(&Client::new(tower::service_fn(answer), "default")), asked)
}

/// A field with a short text or message.
fn field(number: u8, value: impl AsRef<[u8]>) -> Vec<u8> {
    let value = value.as_ref();
    [&[number << 3 | 2, u8::try_from(value.len()).unwrap()], value].concat()
}

fn message(kind: &str, object: &[u8]) -> Vec<u8> {
    let types = [field(1, "v1"), field(2, kind)].concat();
    [b"k8s\0".to_vec(), field(1, types), field(2, object)].concat()
}

/// A list with a pod of this name.
fn list_of(name: &str) -> Vec<u8> {
    message("PodList", &[field(1, field(2, "7")), field(2, field(1, field(1, name)))].concat())
}

async fn names(client: &Client) -> Result<Vec<String>, kube::Error> {
    let list = Api::<WirePod>::all(client.clone()).list(&ListParams::default()).await?;
    Ok(list.items.into_iter().filter_map(|pod| pod.metadata.name).collect())
}

/// Which of the requests accepted the compact format.
fn compact(asked: &Asked) -> Vec<bool> {
    asked.lock().unwrap().iter().map(|(_, formats)| formats.contains("protobuf")).collect()
}

#[tokio::test]
async fn a_list_is_read_in_the_compact_format() {
    let (client, asked) = server(Habit::Says(200, list_of("compact")));
    let list = Api::<WirePod>::all(client.clone()).list(&ListParams::default()).await.unwrap();
    assert_eq!(list.metadata.resource_version.as_deref(), Some("7"));
    assert_eq!((names(&client).await.unwrap(), compact(&asked)), (vec!["compact".to_owned()], vec![true, true]));
}

#[tokio::test]
async fn a_cluster_without_pods_has_an_empty_list() {
    let (client, asked) = server(Habit::Says(200, message("PodList", &field(1, field(2, "7")))));
    assert_eq!((names(&client).await.unwrap(), compact(&asked)), (Vec::<String>::new(), vec![true]));
}

#[tokio::test]
async fn a_server_that_answers_with_json_is_understood() {
    let (client, asked) = server(Habit::AnswersJson);
    assert_eq!((names(&client).await.unwrap(), compact(&asked)), (vec!["json".to_owned()], vec![true]));
}

#[tokio::test]
async fn a_server_that_refuses_the_format_is_asked_for_json_from_then_on() {
    for status in [406, 415] {
        let (client, asked) = server(Habit::Refuses(status));
        assert_eq!(names(&client).await.unwrap(), ["json"]);
        assert_eq!(names(&client).await.unwrap(), ["json"]);
        assert_eq!(compact(&asked), [true, false, false]);
    }
}

#[tokio::test]
async fn a_list_that_cannot_be_read_is_asked_for_as_json_from_then_on() {
    let mut cut_off = list_of("compact");
    cut_off.pop();
    for message in [cut_off, Vec::new(), b"{}".to_vec(), message("NodeList", b"")] {
        let (client, asked) = server(Habit::Says(200, message));
        assert_eq!(names(&client).await.unwrap(), ["json"]);
        assert_eq!(names(&client).await.unwrap(), ["json"]);
        assert_eq!(compact(&asked), [true, false, false]);
    }
}

#[tokio::test]
async fn what_is_asked_for_again_is_the_same_page() {
    let (client, asked) = server(Habit::Refuses(406));
    let page = ListParams::default().limit(500).continue_token("next");
    Api::<WirePod>::all(client).list(&page).await.unwrap();
    let asked = asked.lock().unwrap();
    assert_eq!(asked[0].0, asked[1].0);
    assert!(asked[0].0.contains("limit=500") && asked[0].0.contains("continue=next"), "{asked:?}");
}

#[tokio::test]
async fn a_refusal_in_the_compact_format_is_read_as_one() {
    // The last field is the number 403.
    let said = [field(2, "Failure"), field(3, "not yours"), field(4, "Forbidden"), vec![6 << 3, 0x93, 0x03]].concat();
    let (client, asked) = server(Habit::Says(403, message("Status", &said)));
    let kube::Error::Api(status) = names(&client).await.unwrap_err() else { panic!("another error") };
    assert_eq!((status.code, &*status.reason, &*status.message), (403, "Forbidden", "not yours"));
    assert_eq!(compact(&asked), [true]);
}

#[tokio::test]
async fn nothing_but_lists_of_all_pods_is_asked_for_in_another_format() {
    let (client, asked) = server(Habit::AnswersJson);
    let _ = Api::<WirePod>::namespaced(client.clone(), "shop").list(&ListParams::default()).await;
    let _ = Api::<WirePod>::all(client).watch(&WatchParams::default(), "5").await.map(drop);
    assert_eq!(compact(&asked), [false, false]);
}
