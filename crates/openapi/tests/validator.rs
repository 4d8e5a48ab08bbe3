//! An independent judge of the documents about what is built in. Those about custom resources and of other servers are judged
//! in the tests of the program.

mod support;

use support::{ask, everything, keys, validator::validate};

#[tokio::test]
async fn every_document_is_valid() {
    let openapi = everything();
    let mut documents = Vec::new();
    for key in keys(&openapi).await {
        documents.push((key.clone(), format!("/openapi/v3/{key}")));
    }
    documents.push(("v2".to_owned(), "/openapi/v2".to_owned()));
    for (_, place) in &mut documents {
        let (_, _, body) = ask(&openapi, place, &[]).await;
        *place = String::from_utf8(body).expect("text");
    }
    validate(&documents);
}
