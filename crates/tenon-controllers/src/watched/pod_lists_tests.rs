//! Are pods read one by one, in pages where that is not possible, and as JSON where nothing else is?

use std::sync::Mutex;

use kube::api::{Api, ListParams, WatchParams};

use super::*;

/// How a server answers who accepts the compact format.
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

/// A client of a server that answers so who wants pods one by one, and so who wants pages. What it answers as JSON has one pod
/// of the name `json`.
fn server(one_by_one: Habit, pages: Habit) -> (Client, Arc<PodLists>, Asked) {
    let (asked, lists) = (Asked::default(), Arc::new(PodLists::default()));
    let heard = asked.clone();
    let answer = move |request: Request<Body>| {
        let accepted = request.headers().get(ACCEPT).map_or("", |formats| formats.to_str().unwrap()).to_owned();
        let (is_compact, is_stream) = (accepted.contains("protobuf"), accepted.contains("stream=watch"));
        heard.lock().unwrap().push((request.uri().to_string(), accepted));
        let json = r#"{"metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"json"}}]}"#;
        let format = if is_stream { "application/vnd.kubernetes.protobuf;stream=watch" } else { protobuf::MEDIA_TYPE };
        let (status, format, body) = match if is_stream { &one_by_one } else { &pages } {
            Habit::Says(status, message) if is_compact => (*status, format, message.clone()),
            Habit::Refuses(status) if is_compact => (*status, "text/plain", b"no such format".to_vec()),
            _ => (200, "application/json", json.into()),
        };
        let reply = Response::builder().status(status).header(CONTENT_TYPE, format).header(CONTENT_LENGTH, body.len());
        let reply = reply.body(Body::from(body)).unwrap();
        async { Ok::<_, kube::Error>(reply) }
    };
    (listing(&Client::new(tower::service_fn(answer), "default"), &lists), lists, asked)
}

/// One that knows no pods one by one.
fn pages(habit: Habit) -> (Client, Arc<PodLists>, Asked) {
    let (client, lists, asked) = server(Habit::Refuses(422), habit);
    lists.way.store(PAGES, Ordering::Relaxed);
    (client, lists, asked)
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

/// An event of a list that is told pod by pod.
fn event(kind: &str, about: &str, object: &[u8]) -> Vec<u8> {
    let event = [field(1, kind), field(2, field(1, message(about, object)))].concat();
    [&u32::try_from(event.len()).unwrap().to_be_bytes()[..], &event].concat()
}

fn added(name: &str) -> Vec<u8> {
    event("ADDED", "Pod", &field(1, field(1, name)))
}

/// That these were all pods.
fn end() -> Vec<u8> {
    let annotation = [field(1, "k8s.io/initial-events-end"), field(2, "true")].concat();
    event("BOOKMARK", "Pod", &field(1, [field(6, "9"), field(12, annotation)].concat()))
}

/// The pods of a list, however they came, and its version.
async fn listed(client: &Client, lists: &PodLists) -> Result<(Vec<String>, String), kube::Error> {
    let list = Api::<WirePod>::all(client.clone()).list(&ListParams::default()).await?;
    let names = lists.take().into_iter().chain(list.items.into_iter().map(|pod| lists.small(pod)));
    Ok((names.map(|pod| pod.name().to_owned()).collect(), list.metadata.resource_version.unwrap_or_default()))
}

async fn names(client: &Client, lists: &PodLists) -> Result<Vec<String>, kube::Error> {
    listed(client, lists).await.map(|(names, _)| names)
}

/// Which of the requests accepted the compact format.
fn compact(asked: &Asked) -> Vec<bool> {
    asked.lock().unwrap().iter().map(|(_, formats)| formats.contains("protobuf")).collect()
}

/// Which of the requests asked for pods one by one.
fn one_by_one(asked: &Asked) -> Vec<bool> {
    asked.lock().unwrap().iter().map(|(uri, _)| uri.contains("sendInitialEvents=true")).collect()
}

#[tokio::test]
async fn pods_are_read_one_by_one() {
    let told = [added("a"), added("b"), end()].concat();
    let (client, lists, asked) = server(Habit::Says(200, told), Habit::AnswersJson);
    assert_eq!(listed(&client, &lists).await.unwrap(), (vec!["a".to_owned(), "b".to_owned()], "9".to_owned()));
    assert_eq!(names(&client, &lists).await.unwrap(), ["a", "b"], "every list begins anew");
    assert_eq!(one_by_one(&asked), [true, true]);
}

#[tokio::test]
async fn a_cluster_without_pods_is_one_whose_end_is_told() {
    let (client, lists, _) = server(Habit::Says(200, end()), Habit::AnswersJson);
    assert_eq!(names(&client, &lists).await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_server_that_does_not_tell_all_pods_is_asked_for_pages_from_then_on() {
    let said = [field(2, "Failure"), field(3, "too old"), field(4, "Expired"), vec![6 << 3, 0x9a, 0x03]].concat();
    let broken = [
        Habit::Refuses(422),
        Habit::Refuses(503),
        Habit::AnswersJson,
        Habit::Says(200, added("a")),
        Habit::Says(200, [added("a"), vec![0, 0, 0, 9]].concat()),
        Habit::Says(200, [added("a"), event("ERROR", "Status", &said)].concat()),
        Habit::Says(200, [added("a"), event("ADDED", "Node", &[])].concat()),
    ];
    for habit in broken {
        let (client, lists, asked) = server(habit.clone(), Habit::Says(200, list_of("page")));
        assert_eq!(names(&client, &lists).await.unwrap(), ["page"], "{habit:?}");
        assert_eq!(names(&client, &lists).await.unwrap(), ["page"], "{habit:?}");
        assert_eq!(one_by_one(&asked), [true, false, false], "{habit:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_silent_is_asked_for_pages() {
    let (lists, page) = (Arc::new(PodLists::default()), list_of("page"));
    let answer = move |request: Request<Body>| {
        let (is_stream, page) = (request.uri().to_string().contains("sendInitialEvents"), page.clone());
        async move {
            if is_stream {
                std::future::pending::<()>().await;
            }
            let reply = Response::builder().header(CONTENT_TYPE, protobuf::MEDIA_TYPE).body(Body::from(page));
            Ok::<_, kube::Error>(reply.unwrap())
        }
    };
    let client = listing(&Client::new(tower::service_fn(answer), "default"), &lists);
    assert_eq!(names(&client, &lists).await.unwrap(), ["page"]);
}

#[tokio::test]
async fn a_list_is_read_in_the_compact_format() {
    let (client, lists, asked) = pages(Habit::Says(200, list_of("compact")));
    assert_eq!(listed(&client, &lists).await.unwrap(), (vec!["compact".to_owned()], "7".to_owned()));
    assert_eq!(compact(&asked), [true]);
}

#[tokio::test]
async fn a_cluster_without_pods_has_an_empty_list() {
    let (client, lists, asked) = pages(Habit::Says(200, message("PodList", &field(1, field(2, "7")))));
    assert_eq!((names(&client, &lists).await.unwrap(), compact(&asked)), (Vec::<String>::new(), vec![true]));
}

#[tokio::test]
async fn a_server_that_answers_with_json_is_understood() {
    let (client, lists, asked) = pages(Habit::AnswersJson);
    assert_eq!((names(&client, &lists).await.unwrap(), compact(&asked)), (vec!["json".to_owned()], vec![true]));
}

#[tokio::test]
async fn a_server_that_refuses_the_format_is_asked_for_json_from_then_on() {
    for status in [406, 415] {
        let (client, lists, asked) = pages(Habit::Refuses(status));
        assert_eq!(names(&client, &lists).await.unwrap(), ["json"]);
        assert_eq!(names(&client, &lists).await.unwrap(), ["json"]);
        assert_eq!(compact(&asked), [true, false, false]);
    }
}

#[tokio::test]
async fn a_list_that_cannot_be_read_is_asked_for_as_json_from_then_on() {
    let mut cut_off = list_of("compact");
    cut_off.pop();
    for message in [cut_off, Vec::new(), b"{}".to_vec(), message("NodeList", b"")] {
        let (client, lists, asked) = pages(Habit::Says(200, message));
        assert_eq!(names(&client, &lists).await.unwrap(), ["json"]);
        assert_eq!(names(&client, &lists).await.unwrap(), ["json"]);
        assert_eq!(compact(&asked), [true, false, false]);
    }
}

#[tokio::test]
async fn what_is_asked_for_again_is_the_same_page() {
    let (client, _, asked) = pages(Habit::Refuses(406));
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
    let (client, lists, asked) = pages(Habit::Says(403, message("Status", &said)));
    let kube::Error::Api(status) = names(&client, &lists).await.unwrap_err() else { panic!("another error") };
    assert_eq!((status.code, &*status.reason, &*status.message), (403, "Forbidden", "not yours"));
    assert_eq!(compact(&asked), [true]);
}

#[tokio::test]
async fn nothing_but_lists_of_all_pods_is_asked_for_in_another_format() {
    let (client, _, asked) = pages(Habit::AnswersJson);
    let _ = Api::<WirePod>::namespaced(client.clone(), "shop").list(&ListParams::default()).await;
    let _ = Api::<WirePod>::all(client).watch(&WatchParams::default(), "5").await.map(drop);
    assert_eq!(compact(&asked), [false, false]);
}
