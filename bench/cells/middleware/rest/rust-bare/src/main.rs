//! `node HOST PORT WARM CALLS`: calls per second of a loop on reqwest, without a kit.

use std::env;
use std::process::exit;
use std::time::{Duration, Instant};

use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Error, StatusCode};

const TEXT: &str = "Hello World";

async fn call(client: &Client, url: &str) -> Result<(), Error> {
    let post = client.post(url).header(CONTENT_TYPE, "text/plain; charset=utf-8").body(TEXT);
    let response = post.timeout(Duration::from_secs(5)).send().await?;
    let (status, body) = (response.status(), response.bytes().await?);
    if status != StatusCode::OK || body != TEXT {
        eprintln!("{url}: {status} {body:?}, not {TEXT:?}");
        exit(1);
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let words: Vec<String> = env::args().collect();
    let [_, host, port, warm, calls] = &words[..] else { panic!("node HOST PORT WARM CALLS") };
    let url = format!("http://{host}:{port}/echo");
    let warm = warm.parse().expect("a number");
    let calls = calls.parse().expect("a number");
    // reqwest asks for a cryptography even where it will not need it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().no_proxy().build()?;
    call(&client, &url).await?;
    println!("begun");
    for _ in 0..warm {
        call(&client, &url).await?;
    }
    let start = Instant::now();
    println!("warm");
    for _ in 0..calls {
        call(&client, &url).await?;
    }
    println!("{}", f64::from(calls) / start.elapsed().as_secs_f64());
    Ok(())
}
