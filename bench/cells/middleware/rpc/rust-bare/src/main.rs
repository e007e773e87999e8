//! `node HOST PORT WARM CALLS`: calls per second of a loop on jsonrpsee, without a kit.

use std::env;
use std::process::exit;
use std::time::Instant;

use jsonrpsee::core::client::{ClientT, Error};
use jsonrpsee::http_client::HttpClient;
use jsonrpsee::rpc_params;

const TEXT: &str = "Hello World";

async fn call(client: &HttpClient) -> Result<(), Error> {
    let reply: String = client.request("echo", rpc_params![TEXT]).await?;
    if reply != TEXT {
        eprintln!("the reply is {reply:?}, not {TEXT:?}");
        exit(1);
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let words: Vec<String> = env::args().collect();
    let [_, host, port, warm, calls] = &words[..] else { panic!("node HOST PORT WARM CALLS") };
    let warm = warm.parse().expect("a number");
    let calls = calls.parse().expect("a number");
    let client = HttpClient::builder().build(format!("http://{host}:{port}/"))?;
    call(&client).await?;
    println!("begun");
    for _ in 0..warm {
        call(&client).await?;
    }
    let start = Instant::now();
    println!("warm");
    for _ in 0..calls {
        call(&client).await?;
    }
    println!("{}", f64::from(calls) / start.elapsed().as_secs_f64());
    Ok(())
}
